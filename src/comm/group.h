// SPDX-License-Identifier: Apache-2.0
// Keeps the validated calls that a thread makes between hcclGroupStart and hcclGroupEnd, and then
// queues them together.
#pragma once

#include "base/handle_table.h"
#include "comm/collected_calls.h"
#include "comm/communicator.h"
#include "comm/message_list.h"
#include "device/stream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace hccl::comm {

using CommunicatorHold = HandleTable<Communicator>::Hold;
using StreamHold = HandleTable<device::Stream>::Hold;

// The open group of a thread. In most groups, all calls are undivided messages of one communicator
// on one stream, and are kept in `messages_`. The calls of other groups are kept in a
// CollectedCalls.
class Group {
 public:
  // Open and close a group of the calling thread. Groups nest. The outermost end() queues the kept
  // calls, and blocks while a stream's queue is full and, with HCCL_BLOCKING, until the calls have
  // run. If queueing some of the calls fails, it still queues the others and then throws the first
  // error. end() throws Error(hcclInvalidUsage) if no group is open.
  static void start();
  static void end();
  // Returns the calling thread's open group, or null if there is none.
  [[nodiscard]] static Group* current() noexcept;

  // Returns the communicator of the last message that was kept undivided, if that message used
  // these two handles and both are still valid; otherwise null.
  [[nodiscard]] Communicator* known(std::uint64_t communicator, std::uint64_t stream) const {
    return communicator_.is(communicator) && stream_.is(stream) ? &*communicator_ : nullptr;
  }

  // Returns whether the group keeps calls on the communicator.
  [[nodiscard]] bool has_calls_of(const Communicator& communicator) const {
    return more_ ? more_->has_calls_of(communicator)
                 : communicator_ && &*communicator_ == &communicator;
  }

  // Keep a call. Call keep_known() only after known() has found the call's communicator and stream.
  // Throw Error(hcclInvalidUsage) if the group already has kMostGroupCalls calls on the stream.
  // Throw what Communicator::prepare() and Communicator::check_usable() throw.
  template <class Call>
  void keep_known(const Call& call) {
    admit(*communicator_, *stream_, call);
    add(call);
  }
  template <class Call>
  void keep(CommunicatorHold communicator, StreamHold stream, const Call& call) {
    admit(*communicator, *stream, call);
    add(std::move(communicator), std::move(stream), call);
  }
  // Keep a call that consists of one or more parts: either all parts or none.
  template <class Call>
  void keep_known(const std::vector<Call>& parts) {
    for (const Call& part : parts) admit(*communicator_, *stream_, part);
    add_parts(communicator_.shared(), stream_.shared(), parts);
  }
  template <class Call>
  void keep(const CommunicatorHold& communicator, const StreamHold& stream,
            const std::vector<Call>& parts) {
    for (const Call& part : parts) admit(*communicator, *stream, part);
    add_parts(communicator.shared(), stream.shared(), parts);
  }

 private:
  template <class Call>
  static void admit(Communicator& communicator, device::Stream& stream, const Call& call) {
    communicator.prepare(stream, call);
    communicator.check_usable(stream);
  }
  void add(const CollectiveCall& call);
  void add(const PointToPoint& call);
  void add(CommunicatorHold communicator, StreamHold stream, const CollectiveCall& call);
  void add(CommunicatorHold communicator, StreamHold stream, const PointToPoint& call);
  void add_parts(const std::shared_ptr<Communicator>& communicator,
                 const std::shared_ptr<device::Stream>& stream,
                 const std::vector<CollectiveCall>& parts);
  void add_parts(const std::shared_ptr<Communicator>& communicator,
                 const std::shared_ptr<device::Stream>& stream,
                 const std::vector<PointToPoint>& parts);
  [[nodiscard]] CollectedCalls& collected();
  void queue();

  int depth_ = 0;
  // The communicator and the stream of the last message that was kept undivided. They are held,
  // because the program may destroy both before the group ends.
  CommunicatorHold communicator_;
  StreamHold stream_;
  MessageList messages_;
  std::optional<CollectedCalls> more_;  // all calls, once messages_ cannot hold them
  // The lists in more_ for messages of communicator_ on stream_.
  StreamCalls* on_ = nullptr;
  MessagePart* part_ = nullptr;
};

}  // namespace hccl::comm
