// SPDX-License-Identifier: Apache-2.0
// Keeps the calls of a thread's open group.
#include "comm/group.h"

#include "base/config.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "comm/blocking.h"

#include <array>
#include <new>
#include <utility>

namespace hccl::comm {
namespace {

// Plain storage without a destructor: static destructors may make calls after thread-local objects
// have been destroyed.
struct GroupStorage {
  alignas(Group) std::array<std::byte, sizeof(Group)> bytes;
  Group* open;
};
constinit thread_local GroupStorage storage{};

}  // namespace

Group* Group::current() noexcept { return storage.open; }

void Group::start() {
  GroupStorage& mine = storage;
  if (mine.open == nullptr) mine.open = new (mine.bytes.data()) Group;
  ++mine.open->depth_;
}

void Group::end() {
  GroupStorage& mine = storage;
  if (mine.open == nullptr)
    throw Error(hcclInvalidUsage,
                "hcclGroupEnd without hcclGroupStart on this thread; call both the same number of "
                "times on the same thread");
  if (--mine.open->depth_ > 0) return;
  Group* const group = std::exchange(mine.open, nullptr);
  const ScopeExit destroy([group] { group->~Group(); });
  group->queue();
}

CollectedCalls& Group::collected() {
  if (more_) return *more_;
  more_.emplace();
  if (!communicator_) return *more_;
  ScopeExit unless_all_kept([this] { more_.reset(); });
  on_ = &more_->of(stream_.shared());
  part_ = &on_->part_of(communicator_.shared());
  for (const PointToPoint& call : messages_.all()) more_->keep(*on_, *part_, call);
  unless_all_kept.dismiss();
  return *more_;
}

void Group::add(const CollectiveCall& call) {
  collected().keep(communicator_.shared(), *on_, call);
}

void Group::add(const PointToPoint& call) {
  if (more_) return more_->keep(*on_, *part_, call);
  check_room(messages_.all().size());
  messages_.push_back(call);
}

void Group::add(CommunicatorHold communicator, StreamHold stream, const CollectiveCall& call) {
  CollectedCalls& all = collected();
  all.keep(communicator.shared(), all.of(stream.shared()), call);
}

void Group::add(CommunicatorHold communicator, StreamHold stream, const PointToPoint& call) {
  if (communicator_ || more_) {
    CollectedCalls& all = collected();
    StreamCalls& on = all.of(stream.shared());
    part_ = &on.part_of(communicator.shared());
    on_ = &on;
  }
  communicator_ = std::move(communicator);
  stream_ = std::move(stream);
  add(call);
}

void Group::add_parts(const std::shared_ptr<Communicator>& communicator,
                      const std::shared_ptr<device::Stream>& stream,
                      const std::vector<CollectiveCall>& parts) {
  CollectedCalls& all = collected();
  StreamCalls& on = all.of(stream);
  check_room(on.calls + parts.size() - 1);
  for (const CollectiveCall& part : parts) all.keep(communicator, on, part);
}

void Group::add_parts(const std::shared_ptr<Communicator>& communicator,
                      const std::shared_ptr<device::Stream>& stream,
                      const std::vector<PointToPoint>& parts) {
  CollectedCalls& all = collected();
  StreamCalls& on = all.of(stream);
  check_room(on.calls + parts.size() - 1);
  MessagePart& messages = on.part_of(communicator);
  for (const PointToPoint& part : parts) all.keep(on, messages, part);
}

void Group::queue() {
  if (more_) return more_->queue();
  if (!communicator_) return;
  stream_->make_room();
  communicator_->enqueue(*stream_, std::move(messages_));
  if (blocking_mode()) [[unlikely]]
    wait_for_streams({&stream_.shared(), 1}, {&communicator_.shared(), 1});
}

}  // namespace hccl::comm
