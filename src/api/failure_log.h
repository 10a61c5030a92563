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

#include <pthread.h>

namespace hccl::api {

struct FailedCall {
  const char* function = nullptr;  // a string literal: functions are compared by address
  const char* code_name = nullptr;
  int code = 0;
  std::string_view text;
  LogLevel level = LogLevel::warning;
  bool once = false;  // never said again, however often it fails
  // A failure that may be an answer: a program that finds a module held tries another. It is said
  // unless the thread's next try succeeds.
  bool tries = false;
};

// Uses no heap and throws nothing: it works when memory is short and while static objects are
// destroyed. Any thread. Holds no lock while it writes, which may take as long as the reader of
// stderr likes.
class FailureLog {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // A failure is the same as an earlier one if function, code and text are equal. It is said again,
  // with the number of repetitions, when kPeriod has passed since the last time.
  static constexpr std::chrono::seconds kPeriod{10};
  // Lines within one period; further failures are only counted.
  static constexpr int kMostLines = 20;

  // Says a failed call. One of tries is kept, the last, and said with the next failure that is not,
  // when it comes again, when another thread tries, or with flush(), unless forgive() comes first.
  void note(const FailedCall& call, TimePoint now) noexcept;
  // By a thread whose try has succeeded: forgets the failed one that is kept of it.
  void forgive() noexcept;
  // Says the failure that is kept, and how often each failure was repeated since it was last said.
  // Leaves out what it could say only by waiting: for another thread, or for the reader of stderr.
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

  // The lines that a failure makes the log write, in this order.
  struct Lines {
    Entry evicted;               // with the repetitions that nobody has told yet
    std::uint64_t withheld = 0;  // failures of the period before
    bool failure = false;        // the failure itself
    std::uint64_t repeats = 0;   // since it was last said
  };

  // A failed try, with its text.
  struct Try {
    FailedCall call;  // function null: none
    std::array<char, LastError::kCapacity> text{};
    TimePoint time;
    pthread_t thread = 0;
    Lines lines;

    [[nodiscard]] bool is_again(const FailedCall& other) const {
      return call.function == other.function && thread == pthread_self() &&
             std::string_view(text.data(), call.text.size()) == other.text;
    }
  };

  // With the lock held.
  void keep(const FailedCall& call, TimePoint now);
  // Moves the failure that is kept to `kept`, with the lines to say.
  void take_kept(Try& kept);
  [[nodiscard]] Lines lines_for(const FailedCall& call, TimePoint now);
  // The entry of the same failure; else one for it, unused or said longest ago, whose content moves
  // to `evicted`.
  [[nodiscard]] Entry& entry_of(const FailedCall& call, Entry& evicted);
  [[nodiscard]] bool may_write(TimePoint now, Lines& lines);

  // Without it.
  static void write(const FailedCall& call, const Lines& lines);
  static void write(const Try& kept);
  static void write_failure(const FailedCall& call, std::uint64_t repeats);
  static void write_repeats(const Entry& entry);
  static void write_withheld(std::uint64_t withheld);

  std::mutex mutex_;
  std::array<Entry, kEntries> entries_{};
  TimePoint period_start_;
  int lines_ = 0;               // in this period
  std::uint64_t withheld_ = 0;  // failures beyond kMostLines
  Try kept_{};
};

}  // namespace hccl::api
