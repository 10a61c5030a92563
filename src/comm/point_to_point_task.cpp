// SPDX-License-Identifier: Apache-2.0
// Messages to oneself are copies; the engine runs the others.
#include "comm/point_to_point_task.h"

#include "base/error.h"
#include "base/text.h"
#include "device/copy.h"

#include <algorithm>

namespace hccl::comm {

using node::Direction;
using node::PointToPoint;

std::vector<SelfCopy> pair_self_messages(std::vector<PointToPoint>& calls, int rank) {
  std::vector<PointToPoint> sends, receives;
  for (const PointToPoint& call : calls) {
    if (call.peer == rank) (call.direction == Direction::send ? sends : receives).push_back(call);
  }
  std::erase_if(calls, [rank](const PointToPoint& call) { return call.peer == rank; });
  std::vector<SelfCopy> copies;
  for (std::size_t at = 0; at < std::max(sends.size(), receives.size()); ++at) {
    const PointToPoint* const send = at < sends.size() ? &sends[at] : nullptr;
    const PointToPoint* const receive = at < receives.size() ? &receives[at] : nullptr;
    if (send == nullptr || receive == nullptr || send->count != receive->count ||
        send->type != receive->type) {
      throw Error(hcclInternalError,
                  text("rank ", rank, " sends to itself: ",
                       send != nullptr ? describe(*send) : std::string("nothing"), " meets ",
                       receive != nullptr ? describe(*receive) : std::string("nothing"),
                       "; put both calls into one group and on one stream, with the same count ",
                       "and type"));
    }
    if (send->address != receive->address)
      copies.push_back({send->address, receive->address, send->bytes()});
  }
  return copies;
}

// The stream's next groups, as long as they are of the same communicator and hold no copies.
class PointToPointTask::NextOfCommunicator final : public node::GroupsAhead {
 public:
  NextOfCommunicator(device::Upcoming& upcoming, const Communicator& communicator)
      : upcoming_(upcoming), communicator_(communicator) {}

  std::span<const PointToPoint> next() override {
    const auto* task = upcoming_.next<PointToPointTask>();
    if (task == nullptr || task->communicator_.get() != &communicator_ || !task->copies_.empty())
      return {};
    return task->calls_;
  }

 private:
  device::Upcoming& upcoming_;
  const Communicator& communicator_;
};

device::Outcome PointToPointTask::operator()(device::Upcoming& upcoming) noexcept {
  return communicator_->run_reporting_faults([&] {
    for (const SelfCopy& copy : copies_) {
      if (copy.bytes != 0)
        device::copy_on_device(communicator_->device().arena(), copy.to, copy.from, copy.bytes);
    }
    if (calls_.empty()) return;
    NextOfCommunicator ahead(upcoming, *communicator_);
    communicator_->engine().exchange(place_, calls_, ahead);
  });
}

}  // namespace hccl::comm
