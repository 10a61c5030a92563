// SPDX-License-Identifier: Apache-2.0
// Records positions of streams, waits for them and returns their times.
#include "device/event.h"

#include "base/syn_error.h"
#include "device/stream.h"
#include "device/verified_buffers.h"

#include <chrono>

namespace hccl::device {

std::uint64_t Event::now() noexcept {
  static std::atomic<std::uint64_t> last{0};
  const auto clock = std::chrono::steady_clock::now().time_since_epoch();
  auto time = static_cast<std::uint64_t>(std::chrono::nanoseconds(clock).count());
  std::uint64_t before = last.load(std::memory_order_relaxed);
  do {
    if (time <= before) time = before + 1;
  } while (!last.compare_exchange_weak(before, time, std::memory_order_relaxed));
  return time;
}

void Event::record(Stream& stream) {
  Stamp stamp;
  if (collects_time_) {
    stamp = std::make_shared<std::atomic<std::uint64_t>>(0);
    stream.enqueue(Ordering{[stamp] {
      stamp->store(now(), std::memory_order_release);
      return Outcome::success;
    }});
  }
  Capture capture = stream.capture();
  const std::lock_guard lock(mutex_);
  capture_ = std::move(capture);
  stamp_ = std::move(stamp);
}

Capture Event::capture() const {
  const std::lock_guard lock(mutex_);
  return capture_;
}

Outcome Event::synchronize(std::string* reason) const {
  const Capture captured = capture();
  Stream::wait_for(captured);
  HostEpoch::advance();
  const Outcome outcome = captured.outcome(reason);
  if (outcome != Outcome::success) {
    const auto stream = captured.stream.lock();
    captured.progress->set_reported(captured.ticket,
                                    stream != nullptr ? stream->pushed() : captured.ticket);
  }
  return outcome;
}

bool Event::query(Outcome* outcome, std::string* reason) const {
  const Capture captured = capture();
  if (!captured.complete()) {
    if (const auto stream = captured.stream.lock()) stream->hurry();
    return false;
  }
  HostEpoch::advance();
  *outcome = captured.outcome(reason);
  return true;
}

std::uint64_t Event::time() const {
  if (!collects_time_) {
    throw SynError(synInvalidArgument,
                   "the event does not collect time; create it with EVENT_COLLECT_TIME");
  }
  const std::lock_guard lock(mutex_);
  if (!stamp_)
    throw SynError(synObjectNotInitialized,
                   "the event was never recorded; call synEventRecord on it first");
  const std::uint64_t time = stamp_->load(std::memory_order_acquire);
  if (time == 0)
    throw SynError(synBusy, "the event's work is not complete; synchronise with the event first");
  HostEpoch::advance();
  return time;
}

}  // namespace hccl::device
