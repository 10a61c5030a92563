// SPDX-License-Identifier: Apache-2.0
// Keeps a communicator that its program has destroyed or aborted until its queued calls have run.
#include "comm/communicator.h"
#include "device/stream.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

namespace hccl::comm {
namespace {

// Behind the last call of a communicator on a stream: keeps it until then. Calls do not keep it
// themselves, which would cost each of them a look at a counter that all share.
struct Keeper {
  explicit Keeper(std::shared_ptr<Communicator> kept_in) noexcept : kept(std::move(kept_in)) {}
  device::Outcome operator()() const noexcept { return device::Outcome::success; }

  std::shared_ptr<Communicator> kept;
};

}  // namespace

void Communicator::outlive_calls_of(device::Stream& stream) {
  const bool for_good = own_keeper_ != nullptr;
  own_keeper_ = shared_from_this();  // for good, if there is no memory
  stream.emplace_behind<device::Ordering<Keeper>>(device::Ordering{Keeper(shared_from_this())});
  if (!for_good) own_keeper_.reset();
}

// A stream is let go of without the lock: its end may need that.
void Communicator::outlive_calls() {
  for (;;) {
    std::shared_ptr<device::Stream> stream;
    const std::lock_guard lock(lanes_lock_);
    has_left_ = true;
    const auto next =
        std::ranges::find_if(lanes_, [](const auto& lane) { return !lane->is_outlived; });
    if (next == lanes_.end()) return;
    StreamLane& lane = **next;
    lane.is_outlived = true;
    stream = lane.stream.lock();
    if (stream != nullptr && !stream->progress()->reached(lane.last_ticket))
      outlive_calls_of(*stream);
  }
}

}  // namespace hccl::comm
