// SPDX-License-Identifier: Apache-2.0
// Collecting and queuing the calls of a group.
#include "comm/group.h"

#include "base/error.h"
#include "base/text.h"
#include "comm/host_staging.h"
#include "device/runtime.h"

#include <algorithm>
#include <array>
#include <exception>
#include <list>
#include <memory_resource>
#include <new>
#include <utility>
#include <vector>

namespace hccl::comm {
namespace {

using Memory = std::pmr::memory_resource;

struct CollectivePart {
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<device::Stream> stream;
  node::CollectiveCall call;
};

struct MessagePart {
  explicit MessagePart(std::shared_ptr<Communicator> communicator_in)
      : communicator(std::move(communicator_in)) {}

  std::shared_ptr<Communicator> communicator;
  MessageList calls;
  std::vector<SelfCopy> copies;
};

struct StreamCalls {
  StreamCalls(std::shared_ptr<device::Stream> stream_in, Memory* memory)
      : stream(std::move(stream_in)), messages(memory) {}

  MessagePart& part_of(const std::shared_ptr<Communicator>& communicator) {
    const auto found = std::ranges::find(messages, communicator, &MessagePart::communicator);
    return found != messages.end() ? *found : messages.emplace_back(communicator);
  }

  std::shared_ptr<device::Stream> stream;
  std::pmr::list<MessagePart> messages;  // one for each communicator
  std::size_t calls = 0;                 // collectives, too
};

// The calls of a group. A few of them need no memory of the heap.
class CollectedCalls {
 public:
  StreamCalls& of(const std::shared_ptr<device::Stream>& stream) {
    const auto found = std::ranges::find(streams_, stream, &StreamCalls::stream);
    return found != streams_.end() ? *found : streams_.emplace_back(stream, &memory_);
  }
  void keep(const std::shared_ptr<Communicator>& communicator, StreamCalls& on,
            const node::CollectiveCall& call) {
    count(on);
    collectives_.push_back({communicator, on.stream, call});
  }
  void keep(StreamCalls& on, MessagePart& part, const node::PointToPoint& call) {
    count(on);
    part.calls.push_back(call);
    part.calls.all().back().order = messages_++;
  }
  // In the order of the calls, whatever their streams: a communicator numbers its streams by it.
  [[nodiscard]] const std::pmr::vector<CollectivePart>& collectives() const { return collectives_; }
  [[nodiscard]] std::pmr::list<StreamCalls>& streams() { return streams_; }
  // If there is nothing but messages of one communicator on one stream: those.
  [[nodiscard]] MessagePart* only_messages() {
    const bool alone = collectives_.empty() && streams_.size() == 1;
    return alone && streams_.front().messages.size() == 1 ? &streams_.front().messages.front()
                                                          : nullptr;
  }
  [[nodiscard]] Memory* memory() { return &memory_; }

 private:
  static void count(StreamCalls& on) {
    if (on.calls == Group::kMostCalls) {
      throw Error(hcclInvalidUsage, text("a group has more than ", Group::kMostCalls,
                                         " calls on one stream; end it earlier"));
    }
    ++on.calls;
  }

  std::array<std::byte, 1024> buffer_;
  std::pmr::monotonic_buffer_resource memory_{buffer_.data(), buffer_.size()};
  std::pmr::list<StreamCalls> streams_{&memory_};  // in the order of their first calls
  std::pmr::vector<CollectivePart> collectives_{&memory_};
  std::uint64_t messages_ = 0;
};

struct OpenGroup {
  int depth = 0;
  CollectedCalls calls;
  // Of the last message.
  CallHandles handles{};
  StreamCalls* on = nullptr;
  MessagePart* part = nullptr;
};

// In plain storage, so that nothing is destroyed at the thread's end: static destructors may still
// call.
alignas(OpenGroup) constinit thread_local std::array<std::byte, sizeof(OpenGroup)> group_storage{};
constinit thread_local OpenGroup* open_group = nullptr;

// Queues one part of a group; what it throws is told when the others are queued.
template <class Part>
void attempt(Part part, std::exception_ptr& first_error) {
  try {
    part();
  } catch (...) {
    if (!first_error) first_error = std::current_exception();
  }
}

// Messages of two ranks match in the order of the calls, whatever their streams: so all are
// numbered before any is queued. What a rank sends itself is paired first, for that may fail.
void number_messages(CollectedCalls& collected, std::exception_ptr& first_error) {
  struct Numbered {
    Communicator* communicator;
    device::Stream* stream;
    node::PointToPoint* call;
  };
  std::pmr::vector<Numbered> all(collected.memory());
  for (StreamCalls& calls : collected.streams()) {
    std::erase_if(calls.messages, [&](MessagePart& part) {
      bool paired = false;
      attempt(
          [&] {
            part.communicator->check_usable(*calls.stream);
            part.copies = pair_self_messages(part.calls, part.communicator->rank());
            paired = true;
          },
          first_error);
      return !paired;
    });
    for (MessagePart& part : calls.messages) {
      for (node::PointToPoint& call : part.calls.all())
        all.push_back({part.communicator.get(), calls.stream.get(), &call});
    }
  }
  const auto order = [](const Numbered& one) { return one.call->order; };
  if (!std::ranges::is_sorted(all, {}, order)) std::ranges::sort(all, {}, order);
  for (const Numbered& one : all) one.communicator->number(*one.stream, {one.call, 1});
}

// Messages of several communicators on one stream run one communicator after the other: on all
// ranks in the same order, whatever that of their calls, or ranks would wait for each other.
void put_in_common_order(std::pmr::list<MessagePart>& messages) {
  messages.sort([](const MessagePart& a, const MessagePart& b) {
    return a.communicator->comes_before(*b.communicator);
  });
}

// Messages of one communicator on one stream.
void queue(Communicator& communicator, device::Stream& stream, MessageList&& calls) {
  stream.make_room();
  communicator.check_usable(stream);
  std::vector<SelfCopy> copies = pair_self_messages(calls, communicator.rank());
  communicator.number_and_enqueue(stream, std::move(calls), std::move(copies));
}

// The collectives in the order of the calls, then for each stream all messages of a communicator
// together. Throws the first error, having queued the rest.
void queue(CollectedCalls& collected) {
  if (MessagePart* const part = collected.only_messages())
    return queue(*part->communicator, *collected.streams().front().stream, std::move(part->calls));
  std::exception_ptr first_error;
  for (StreamCalls& calls : collected.streams()) calls.stream->make_room();
  number_messages(collected, first_error);
  for (const CollectivePart& part : collected.collectives())
    attempt([&] { part.communicator->enqueue(*part.stream, part.call); }, first_error);
  for (StreamCalls& calls : collected.streams()) {
    put_in_common_order(calls.messages);
    for (MessagePart& part : calls.messages) {
      attempt(
          [&] {
            part.communicator->enqueue(*calls.stream, std::move(part.calls),
                                       std::move(part.copies));
          },
          first_error);
    }
  }
  if (first_error) std::rethrow_exception(first_error);
}

// Before a call on host memory is queued or kept.
void prepare(Communicator& communicator, device::Stream& stream, const node::CollectiveCall& call) {
  if (uses_host_memory(call, communicator.rank(), communicator.size()))
    communicator.prepare_stage(stream);
}
void prepare(Communicator& communicator, device::Stream& stream, const node::PointToPoint& call) {
  if (uses_host_memory(call)) communicator.prepare_stage(stream, call.peer == communicator.rank());
}

// Before it is kept.
template <class Call>
void admit(Communicator& communicator, device::Stream& stream, const Call& call) {
  prepare(communicator, stream, call);
  communicator.check_usable(stream);
}

}  // namespace

void Group::start() {
  if (open_group == nullptr) open_group = new (group_storage.data()) OpenGroup;
  ++open_group->depth;
}

void Group::end() {
  if (open_group == nullptr)
    throw Error(hcclInvalidUsage, "hcclGroupEnd without hcclGroupStart on this thread");
  if (--open_group->depth > 0) return;
  const auto destroy = [](OpenGroup* group) { group->~OpenGroup(); };
  const std::unique_ptr<OpenGroup, decltype(destroy)> group(std::exchange(open_group, nullptr));
  queue(group->calls);
}

Communicator* Group::known(const CallHandles& handles) {
  const OpenGroup* const group = open_group;
  if (group == nullptr || group->part == nullptr || group->handles != handles) return nullptr;
  const bool alive = communicators().alive(handles.communicator) &&
                     device::Runtime::instance().streams().alive(handles.stream);
  return alive ? group->part->communicator.get() : nullptr;
}

void Group::keep(const node::CollectiveCall& call) {
  OpenGroup& group = *open_group;
  admit(*group.part->communicator, *group.on->stream, call);
  group.calls.keep(group.part->communicator, *group.on, call);
}

void Group::keep(const node::PointToPoint& call) {
  OpenGroup& group = *open_group;
  admit(*group.part->communicator, *group.on->stream, call);
  group.calls.keep(*group.on, *group.part, call);
}

void Group::submit(const CallHandles& /*handles*/,
                   const std::shared_ptr<Communicator>& communicator,
                   const std::shared_ptr<device::Stream>& stream,
                   const node::CollectiveCall& call) {
  if (open_group == nullptr) return communicator->enqueue(*stream, call);
  admit(*communicator, *stream, call);
  open_group->calls.keep(communicator, open_group->calls.of(stream), call);
}

void Group::submit(const CallHandles& handles, const std::shared_ptr<Communicator>& communicator,
                   const std::shared_ptr<device::Stream>& stream, const node::PointToPoint& call) {
  if (open_group == nullptr) {
    prepare(*communicator, *stream, call);
    return queue(*communicator, *stream, MessageList(call));
  }
  admit(*communicator, *stream, call);
  OpenGroup& group = *open_group;
  group.part = nullptr;  // until all three are known
  group.on = &group.calls.of(stream);
  group.handles = handles;
  group.part = &group.on->part_of(communicator);
  group.calls.keep(*group.on, *group.part, call);
}

}  // namespace hccl::comm
