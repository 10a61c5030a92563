// SPDX-License-Identifier: Apache-2.0
// The time at which a blocking call times out. Every wait for other ranks has a deadline, which is
// never() if the program has disabled the time-out.
#pragma once

#include <algorithm>
#include <chrono>

namespace hccl {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  // Returns a deadline `limit` from now, or one that never expires if `limit` is zero or negative.
  [[nodiscard]] static Deadline after(Duration limit) {
    return limit <= Duration::zero() ? never() : Deadline(Clock::now() + limit);
  }
  [[nodiscard]] static Deadline never() { return Deadline(Clock::time_point::max()); }

  [[nodiscard]] bool is_never() const { return at_ == Clock::time_point::max(); }
  [[nodiscard]] bool expired() const { return !is_never() && Clock::now() >= at_; }
  [[nodiscard]] Clock::time_point time() const { return at_; }

  // Returns the time left, clamped to [0, limit]. Returns `limit` if the deadline never expires.
  [[nodiscard]] Duration remaining(Duration limit = std::chrono::hours(24)) const {
    if (is_never()) return limit;
    return std::clamp(at_ - Clock::now(), Duration::zero(), limit);
  }
  // Returns the earlier of this deadline and `limit` from now; `limit` must be positive.
  [[nodiscard]] Deadline within(Duration limit) const {
    return remaining(limit) < limit ? *this : after(limit);
  }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

// Converts a duration to seconds, for messages.
[[nodiscard]] inline double seconds(Deadline::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace hccl
