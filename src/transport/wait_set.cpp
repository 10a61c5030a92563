// SPDX-License-Identifier: Apache-2.0
// Calls poll(2) on the endpoints' descriptors, between begin_sleep() and end_sleep().
#include "transport/wait_set.h"

#include "base/errno_advice.h"
#include "base/text.h"

#include <algorithm>
#include <cerrno>

#include <sys/eventfd.h>
#include <unistd.h>

namespace hccl::transport {
namespace {

// Calls end_sleep() on every endpoint whose begin_sleep() succeeded, even if an exception is thrown
// in between.
class Sleepers {
 public:
  explicit Sleepers(std::span<const WaitSet::Entry> entries) : entries_(entries) {}
  ~Sleepers() { end(); }
  Sleepers(const Sleepers&) = delete;
  Sleepers& operator=(const Sleepers&) = delete;

  // Calls begin_sleep() on all endpoints. If begin_sleep() returns false for one of them, ends the
  // sleeps that have begun, and returns false.
  [[nodiscard]] bool begin(SleepPlan& plan) {
    for (const WaitSet::Entry& entry : entries_) {
      if (!entry.endpoint->begin_sleep(entry.interest, plan)) {
        end();
        return false;
      }
      ++begun_;
    }
    return true;
  }
  void end() noexcept {
    for (; begun_ > 0; --begun_) entries_[begun_ - 1].endpoint->end_sleep();
  }

 private:
  std::span<const WaitSet::Entry> entries_;
  std::size_t begun_ = 0;
};

timespec to_timespec(Deadline::Duration duration) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
  return {static_cast<time_t>(nanoseconds / 1'000'000'000), nanoseconds % 1'000'000'000};
}

}  // namespace

WaitSet::WaitSet() : bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_.valid()) {
    throw Error(hcclSystemError, text("cannot create an eventfd: ", system_error_text(errno), "; ",
                                      advice_on(errno, "raise ulimit -n")));
  }
}

void WaitSet::ring() noexcept {
  const std::uint64_t one = 1;
  // The write could fail only after 2^64 rings that were not read.
  static_cast<void>(!write(bell_.get(), &one, sizeof(one)));
}

bool WaitSet::consume_ring() noexcept {
  std::uint64_t count = 0;
  return read(bell_.get(), &count, sizeof(count)) == static_cast<ssize_t>(sizeof(count));
}

WaitSet::WakeReason WaitSet::wait(std::span<const Entry> entries, Deadline deadline) {
  plan_.descriptors.clear();
  plan_.descriptors.push_back({bell_.get(), POLLIN, 0});
  plan_.at_most = deadline.remaining();
  Sleepers sleepers(entries);
  if (!sleepers.begin(plan_)) return consume_ring() ? WakeReason::rung : WakeReason::ready;
  const WakeReason outcome = sleep(deadline);
  // If the sleep ended before the deadline, an endpoint had limited it and must be called now.
  return outcome == WakeReason::expired && !deadline.expired() ? WakeReason::ready : outcome;
}

// Returns `expired` if nothing has happened within the time that the plan allows.
WaitSet::WakeReason WaitSet::sleep(Deadline deadline) {
  while (true) {
    const timespec limit = to_timespec(std::min(plan_.at_most, deadline.remaining()));
    const int count = ppoll(plan_.descriptors.data(), plan_.descriptors.size(), &limit, nullptr);
    if (count > 0) return consume_ring() ? WakeReason::rung : WakeReason::ready;
    if (count == 0) return WakeReason::expired;
    if (errno == EINTR) continue;
    throw Error(hcclSystemError, text("cannot wait for ", plan_.descriptors.size(),
                                      " connections: ", system_error_text(errno), "; ",
                                      advice_on(errno, "raise ulimit -n")));
  }
}

}  // namespace hccl::transport
