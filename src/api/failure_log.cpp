// SPDX-License-Identifier: Apache-2.0
// Formats and writes the log lines about failed calls, and limits how often a line is repeated.
#include "api/failure_log.h"

#include "base/log.h"
#include "base/log_output.h"

#include <algorithm>
#include <array>
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

// Formats a number as text without using the heap.
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

FailureLog::Entry& FailureLog::entry_of(const FailedCall& call, Entry& evicted) {
  const std::uint64_t text_hash = hash_of(call.text);
  Entry* oldest = &entries_.front();
  for (Entry& entry : entries_) {
    if (entry.function == call.function && entry.code == call.code && entry.text_hash == text_hash)
      return entry;
    if (entry.said < oldest->said) oldest = &entry;  // unused entries count as oldest
  }
  evicted = *oldest;
  *oldest = {call.function, call.code_name, call.code, text_hash, 0,
             TimePoint(),   call.level,     call.once};
  return *oldest;
}

bool FailureLog::may_write(TimePoint now, Lines& lines) {
  if (now - period_start_ >= kPeriod) {
    lines.withheld = std::exchange(withheld_, 0);
    period_start_ = now;
    lines_ = 0;
  }
  if (lines_ == kMostLines) return false;
  ++lines_;
  return true;
}

FailureLog::Lines FailureLog::lines_for(const FailedCall& call, TimePoint now) {
  Lines lines;
  Entry& entry = entry_of(call, lines.evicted);
  const bool is_new = entry.said == TimePoint();
  if (!is_new && (entry.once || now - entry.said < kPeriod)) {
    ++entry.repeats;
    return lines;
  }
  lines.failure = may_write(now, lines);
  if (lines.failure) {
    entry.said = now;
    lines.repeats = std::exchange(entry.repeats, 0);
  } else {
    ++withheld_;
    if (is_new) entry = {};
  }
  return lines;
}

FailureLog::Try* FailureLog::place_of_try() {
  const auto is_own = [](const Try& kept) { return kept.is_of_this_thread(); };
  const auto is_free = [](const Try& kept) { return kept.call.function == nullptr; };
  auto* place = std::ranges::find_if(kept_, is_own);
  if (place == kept_.end()) place = std::ranges::find_if(kept_, is_free);
  return place == kept_.end() ? nullptr : place;
}

bool FailureLog::keep(const FailedCall& call, TimePoint now) {
  const std::lock_guard lock(mutex_);
  Try* const place = place_of_try();
  if (place == nullptr || place->is_again(call)) return false;
  const std::size_t length = std::min(call.text.size(), place->text.size());
  std::copy_n(call.text.data(), length, place->text.data());
  place->call = call;
  place->call.text = call.text.substr(0, length);
  place->time = now;
  place->thread = pthread_self();
  return true;
}

bool FailureLog::take_kept(Try& kept) {
  auto* const found =
      std::ranges::find_if(kept_, [](const Try& one) { return one.call.function != nullptr; });
  if (found == kept_.end()) return false;
  kept = *found;
  kept.call.text = {kept.text.data(), kept.call.text.size()};
  kept.lines = lines_for(kept.call, kept.time);
  found->call = {};
  return true;
}

void FailureLog::write_kept_tries() {
  Try kept{};
  const auto take = [&] {
    const std::lock_guard lock(mutex_);
    return take_kept(kept);
  };
  while (take()) write(kept.call, kept.lines);
}

void FailureLog::note(const FailedCall& call, TimePoint now) noexcept {
  if (!log_enabled(call.level)) return;
  if (call.tries && keep(call, now)) return;
  write_kept_tries();
  Lines lines;
  {
    const std::lock_guard lock(mutex_);
    lines = lines_for(call, now);
  }
  write(call, lines);
}

void FailureLog::forgive() noexcept {
  const std::lock_guard lock(mutex_);
  for (Try& kept : kept_) {
    if (kept.is_of_this_thread()) kept.call = {};
  }
}

void FailureLog::flush() noexcept {
  for (std::size_t at = 0; at < kMostTries; ++at) {
    Try kept{};
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock.owns_lock()) return;
      if (!take_kept(kept)) break;
    }
    if (log_would_wait()) return;
    write(kept.call, kept.lines);
  }
  for (std::size_t at = 0; at <= kEntries; ++at) {
    Entry repeated;
    std::uint64_t withheld = 0;
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock.owns_lock()) return;
      if (at < kEntries) {
        repeated = entries_[at];
        entries_[at].repeats = 0;
      } else {
        withheld = std::exchange(withheld_, 0);
      }
    }
    if ((repeated.repeats != 0 || withheld != 0) && log_would_wait()) return;
    write_repeats(repeated);
    write_withheld(withheld);
  }
}

void FailureLog::write(const FailedCall& call, const Lines& lines) {
  write_repeats(lines.evicted);
  write_withheld(lines.withheld);
  if (lines.failure) write_failure(call, lines.repeats);
}

void FailureLog::write_failure(const FailedCall& call, std::uint64_t repeats) {
  const Digits code(call.code);
  if (repeats == 0) {
    log_parts(call.level, "api",
              {call.function, " failed: ", call.code_name, " (", code.view(), "): ", call.text});
    return;
  }
  // Omits the numeric code, because log_parts() accepts at most eight parts.
  log_parts(call.level, "api",
            {call.function, " failed: ", call.code_name, ", repeated ", Digits(repeats).view(),
             times(repeats), ": ", call.text});
}

void FailureLog::write_repeats(const Entry& entry) {
  if (entry.repeats == 0 || entry.once) return;
  log_parts(entry.level, "api",
            {entry.function, " failed: ", entry.code_name, ", repeated ",
             Digits(entry.repeats).view(), times(entry.repeats)});
}

void FailureLog::write_withheld(std::uint64_t withheld) {
  if (withheld == 0) return;
  log_parts(LogLevel::warning, "api",
            {Digits(withheld).view(), " more failed calls are not shown; look at the first ones"});
}

}  // namespace hccl::api
