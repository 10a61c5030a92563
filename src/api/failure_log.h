// SPDX-License-Identifier: Apache-2.0
// Logs which calls failed and why, for programs that print only codes. Limits the number of lines,
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
  bool once = false;  // log only the first failure, no repetitions
  // The call is a try: the program tries one module after another until one is free, so this
  // failure may be expected. FailureLog::note() therefore does not log it at once.
  bool tries = false;
};

// Neither allocates memory nor throws, so that it works when memory is short and while static
// objects are destroyed. Holds no lock while it writes, because a write to stderr may block until
// the pipe's reader drains the pipe. Thread safety: any thread.
class FailureLog {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // A failure that note() has logged is only counted if it occurs again within this time. Two
  // failures are the same if function, code and text are equal. The next line about the failure
  // states how often it was repeated.
  static constexpr std::chrono::seconds kPeriod{10};
  // The maximum number of failures that are logged per kPeriod. Further failures are only counted.
  static constexpr int kMostLines = 20;
  // The maximum number of kept tries (see note()): enough for one thread per device of a node with
  // the default HCCL_DEVICE_COUNT.
  static constexpr std::size_t kMostTries = 8;

  // Logs a failed call, or counts it (see kPeriod and kMostLines). Keeps a failed try
  // (FailedCall::tries) instead of logging it, for at most kMostTries threads; a thread's new try
  // replaces its kept one. forgive() drops the kept try of the calling thread. All kept tries are
  // logged when a thread repeats its kept try, when any thread fails in a call that is not a try
  // and whose level is logged, when there is no room for another try, or when flush() is called.
  void note(const FailedCall& call, TimePoint now) noexcept;
  // Drops the kept try of the calling thread. Call when a try of this thread has succeeded.
  void forgive() noexcept;
  // Logs the kept tries, the repetitions that have not been logged yet (except of failures with
  // FailedCall::once), and the number of failures beyond kMostLines. Does not block: omits lines
  // that would have to wait for another thread or for the reader of stderr.
  void flush() noexcept;

 private:
  struct Entry {
    const char* function = nullptr;  // null: the entry is unused
    const char* code_name = nullptr;
    int code = 0;
    std::uint64_t text_hash = 0;
    std::uint64_t repeats = 0;
    TimePoint said;
    LogLevel level = LogLevel::warning;
    bool once = false;
  };
  static constexpr std::size_t kEntries = 256;  // more than the number of functions

  // The lines to write after a failure, in this order.
  struct Lines {
    Entry evicted;               // failure whose entry was reused, to log its repetitions
    std::uint64_t withheld = 0;  // failures of the previous period that were not logged
    bool failure = false;        // whether to log the failure itself
    std::uint64_t repeats = 0;   // of the failure, since it was last logged
  };

  // A kept try.
  struct Try {
    FailedCall call;  // function null: no try is kept here
    std::array<char, LastError::kCapacity> text{};
    TimePoint time;
    pthread_t thread = 0;
    Lines lines;

    [[nodiscard]] bool is_of_this_thread() const {
      return call.function != nullptr && pthread_equal(thread, pthread_self()) != 0;
    }
    [[nodiscard]] bool is_again(const FailedCall& other) const {
      return call.function == other.function &&
             std::string_view(text.data(), call.text.size()) == other.text;
    }
  };

  // Keeps the try in place of this thread's kept try. Returns false, and keeps nothing, if the
  // thread repeats its kept try or if there is no room.
  [[nodiscard]] bool keep(const FailedCall& call, TimePoint now);
  // Logs all kept tries.
  void write_kept_tries();

  // Call the functions from here to may_write() with the lock held.
  // Returns the place for a try of this thread, or null if there is no room.
  [[nodiscard]] Try* place_of_try();
  // Moves one kept try, with the lines to write, to `kept`. Returns false if no try is kept.
  [[nodiscard]] bool take_kept(Try& kept);
  [[nodiscard]] Lines lines_for(const FailedCall& call, TimePoint now);
  // Returns the entry of the failure. If the failure has none, gives it an unused entry, or the
  // entry whose failure was logged longest ago. The old content moves to `evicted`.
  [[nodiscard]] Entry& entry_of(const FailedCall& call, Entry& evicted);
  [[nodiscard]] bool may_write(TimePoint now, Lines& lines);

  // Call the write functions without the lock.
  static void write(const FailedCall& call, const Lines& lines);
  static void write_failure(const FailedCall& call, std::uint64_t repeats);
  static void write_repeats(const Entry& entry);
  static void write_withheld(std::uint64_t withheld);

  std::mutex mutex_;
  std::array<Entry, kEntries> entries_{};
  TimePoint period_start_;
  int lines_ = 0;               // in this period
  std::uint64_t withheld_ = 0;  // failures in this period that were not logged
  std::array<Try, kMostTries> kept_{};
};

}  // namespace hccl::api
