// SPDX-License-Identifier: Apache-2.0
// Lines about failed calls, their repetitions and their limits.
#include "api/failure_log.h"

#include "base/log.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace hccl::api {
namespace {

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash;
}

// A number as text, without the heap.
class Digits {
 public:
  template <class Number>
  explicit Digits(Number number) {
    const auto end = std::to_chars(digits_.data(), digits_.data() + digits_.size(), number).ptr;
    length_ = static_cast<std::size_t>(end - digits_.data());
  }
  [[nodiscard]] std::string_view view() const { return {digits_.data(), length_}; }

 private:
  std::array<char, 24> digits_{};
  std::size_t length_ = 0;
};

std::string_view times(std::uint64_t repeats) { return repeats == 1 ? " time" : " times"; }

}  // namespace

FailureLog::Entry& FailureLog::entry_of(const FailedCall& call, std::uint64_t text_hash) {
  Entry* oldest = &entries_.front();
  for (Entry& entry : entries_) {
    if (entry.function == call.function && entry.code == call.code && entry.text_hash == text_hash)
      return entry;
    if (entry.function == nullptr) {
      oldest = &entry;
      break;
    }
    if (entry.said < oldest->said) oldest = &entry;
  }
  write_repeats(*oldest);
  *oldest = {call.function, call.code_name, call.code, text_hash, 0,
             TimePoint(),   call.level,     call.once};
  return *oldest;
}

bool FailureLog::may_write(TimePoint now) {
  if (now - period_start_ >= kPeriod) {
    write_withheld();
    period_start_ = now;
    lines_ = 0;
  }
  if (lines_ == kMostLines) return false;
  ++lines_;
  return true;
}

void FailureLog::note(const FailedCall& call, TimePoint now) noexcept {
  if (!log_enabled(call.level)) return;
  const std::lock_guard lock(mutex_);
  say_deferred();
  say(call, now);
}

void FailureLog::note_deferred(const FailedCall& call, TimePoint now) noexcept {
  if (!log_enabled(call.level)) return;
  const std::lock_guard lock(mutex_);
  if (deferred_.function == call.function && deferred_.text == call.text) {
    say_deferred();
    return say(call, now);
  }
  const std::size_t length = std::min(call.text.size(), deferred_text_.size());
  std::copy_n(call.text.data(), length, deferred_text_.data());
  deferred_ = call;
  deferred_.text = {deferred_text_.data(), length};
  deferred_since_ = now;
}

void FailureLog::forgive() noexcept {
  const std::lock_guard lock(mutex_);
  deferred_ = {};
}

void FailureLog::say_deferred() {
  if (deferred_.function == nullptr) return;
  say(deferred_, deferred_since_);
  deferred_ = {};
}

void FailureLog::say(const FailedCall& call, TimePoint now) {
  Entry& entry = entry_of(call, hash_of(call.text));
  const bool is_new = entry.said == TimePoint();
  if (!is_new && (entry.once || now - entry.said < kPeriod)) {
    ++entry.repeats;
    return;
  }
  if (!may_write(now)) {
    if (is_new) entry = {};
    ++withheld_;
    return;
  }
  entry.said = now;
  write(call, std::exchange(entry.repeats, 0));
}

void FailureLog::flush() noexcept {
  const std::lock_guard lock(mutex_);
  say_deferred();
  for (Entry& entry : entries_) write_repeats(entry);
  write_withheld();
}

void FailureLog::write(const FailedCall& call, std::uint64_t repeats) {
  const Digits code(call.code);
  if (repeats == 0) {
    log_parts(call.level, "api",
              {call.function, " failed: ", call.code_name, " (", code.view(), "): ", call.text});
    return;
  }
  // One line in two calls would mix with other ranks' lines, and a line has few parts.
  log_parts(call.level, "api",
            {call.function, " failed: ", call.code_name, ", repeated ", Digits(repeats).view(),
             times(repeats), ": ", call.text});
}

void FailureLog::write_repeats(Entry& entry) {
  const std::uint64_t repeats = std::exchange(entry.repeats, 0);
  if (repeats == 0 || entry.once) return;
  log_parts(entry.level, "api",
            {entry.function, " failed: ", entry.code_name, ", repeated ", Digits(repeats).view(),
             times(repeats)});
}

void FailureLog::write_withheld() {
  const std::uint64_t withheld = std::exchange(withheld_, 0);
  if (withheld == 0) return;
  log_parts(LogLevel::warning, "api",
            {Digits(withheld).view(), " more failed calls are not shown; look at the first ones"});
}

}  // namespace hccl::api
