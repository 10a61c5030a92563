// SPDX-License-Identifier: Apache-2.0
// Says on stderr which calls failed and why, for programs that print codes only. Limits repetition,
// so that a loop of failing calls cannot flood the log.
#pragma once

#include "api/last_error.h"
#include "base/config.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace hccl::api {

struct FailedCall {
  const char* function = nullptr;  // a string literal: functions are compared by address
  const char* code_name = nullptr;
  int code = 0;
  std::string_view text;
  LogLevel level = LogLevel::warning;
  bool once = false;  // never said again, however often it fails
};

// Uses no heap and throws nothing: it works when memory is short and while static objects are
// destroyed. Any thread.
class FailureLog {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // A failure is the same as an earlier one if function, code and text are equal. It is said again,
  // with the number of repetitions, when kPeriod has passed since the last time.
  static constexpr std::chrono::seconds kPeriod{10};
  // Lines within one period; further failures are only counted.
  static constexpr int kMostLines = 20;

  void note(const FailedCall& call, TimePoint now) noexcept;
  // A failure that may be an answer: a program that finds a module held tries another. It is said
  // when it comes again, before the next failure of another call and with flush(), unless forgive()
  // comes first. One is kept, the last.
  void note_deferred(const FailedCall& call, TimePoint now) noexcept;
  void forgive() noexcept;
  // Says how often each failure was repeated since it was last said.
  void flush() noexcept;

 private:
  struct Entry {
    const char* function = nullptr;  // null: unused
    const char* code_name = nullptr;
    int code = 0;
    std::uint64_t text_hash = 0;
    std::uint64_t repeats = 0;
    TimePoint said;
    LogLevel level = LogLevel::warning;
    bool once = false;
  };
  static constexpr std::size_t kEntries = 256;  // more than there are functions

  void say(const FailedCall& call, TimePoint now);
  void say_deferred();

  // The entry of the same failure; else one for it, unused or said longest ago.
  [[nodiscard]] Entry& entry_of(const FailedCall& call, std::uint64_t text_hash);
  [[nodiscard]] bool may_write(TimePoint now);
  static void write(const FailedCall& call, std::uint64_t repeats);
  static void write_repeats(Entry& entry);
  void write_withheld();

  std::mutex mutex_;
  std::array<Entry, kEntries> entries_{};
  // The deferred failure; its text in a buffer of its own.
  FailedCall deferred_;
  TimePoint deferred_since_;
  std::array<char, LastError::kCapacity> deferred_text_{};
  TimePoint period_start_;
  int lines_ = 0;               // in this period
  std::uint64_t withheld_ = 0;  // failures beyond kMostLines
};

}  // namespace hccl::api
