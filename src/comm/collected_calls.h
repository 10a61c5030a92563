// SPDX-License-Identifier: Apache-2.0
// Collects the calls of a group. Not used if the group's calls are messages of one communicator on
// one stream, and none of them is divided into parts.
#pragma once

#include "comm/communicator.h"
#include "comm/message_list.h"
#include "device/stream.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <memory_resource>
#include <utility>
#include <vector>

namespace hccl::comm {

struct CollectivePart {
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<device::Stream> stream;
  CollectiveCall call;
};

struct MessagePart {
  explicit MessagePart(std::shared_ptr<Communicator> communicator_in)
      : communicator(std::move(communicator_in)) {}

  std::shared_ptr<Communicator> communicator;
  MessageList calls;
  std::vector<SelfCopy> copies;
};

struct StreamCalls {
  StreamCalls(std::shared_ptr<device::Stream> stream_in, std::pmr::memory_resource* memory)
      : stream(std::move(stream_in)), messages(memory) {}

  MessagePart& part_of(const std::shared_ptr<Communicator>& communicator) {
    const auto found = std::ranges::find(messages, communicator, &MessagePart::communicator);
    return found != messages.end() ? *found : messages.emplace_back(communicator);
  }

  std::shared_ptr<device::Stream> stream;
  std::pmr::list<MessagePart> messages;  // one for each communicator
  std::size_t calls = 0;                 // including collectives
};

inline constexpr std::size_t kMostGroupCalls = 1024;  // per stream

// Throws Error(hcclInvalidUsage) if a group that has `calls` calls on a stream has no room for
// another.
void check_room(std::size_t calls);

// The lists use a buffer of 1 KiB inside the object, and the heap only once the buffer is full.
class CollectedCalls {
 public:
  StreamCalls& of(const std::shared_ptr<device::Stream>& stream) {
    const auto found = std::ranges::find(streams_, stream, &StreamCalls::stream);
    return found != streams_.end() ? *found : streams_.emplace_back(stream, &memory_);
  }
  void keep(const std::shared_ptr<Communicator>& communicator, StreamCalls& on,
            const CollectiveCall& call) {
    count(on);
    collectives_.push_back({communicator, on.stream, call});
  }
  void keep(StreamCalls& on, MessagePart& part, const PointToPoint& call) {
    count(on);
    part.calls.push_back(call);
    part.calls.all().back().order = messages_++;
  }
  [[nodiscard]] bool has_calls_of(const Communicator& communicator) const;
  // Queues the collectives in call order. Then queues the messages: on each stream, one command for
  // all messages of a communicator. If some calls cannot be queued, still queues the others, and
  // then throws the first error. Blocks while a stream's queue is full and, with HCCL_BLOCKING,
  // until the calls have run: see wait_for_streams().
  void queue();

 private:
  static void count(StreamCalls& on) {
    check_room(on.calls);
    ++on.calls;
  }
  void number_messages(std::exception_ptr& first_error);
  void wait() const;

  std::array<std::byte, 1024> buffer_;
  std::pmr::monotonic_buffer_resource memory_{buffer_.data(), buffer_.size()};
  std::pmr::list<StreamCalls> streams_{&memory_};  // in the order of their first calls
  // In the order in which the program made the calls, across all streams: this order determines the
  // streams' ordinals.
  std::pmr::vector<CollectivePart> collectives_{&memory_};
  std::uint64_t messages_ = 0;
};

}  // namespace hccl::comm
