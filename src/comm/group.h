// SPDX-License-Identifier: Apache-2.0
// Keeps the validated calls between hcclGroupStart and hcclGroupEnd of a thread, and queues them
// together.
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

// The open group of a thread. Most are messages of one communicator on one stream: those are kept
// here.
class Group {
 public:
  // Open and close a group of the calling thread; groups nest. end() throws Error(hcclInvalidUsage)
  // without a start; the outermost one queues what was kept, and throws the first error, having
  // queued the rest.
  static void start();
  static void end();
  // Null if none is open.
  [[nodiscard]] static Group* current() noexcept;

  // The communicator of the last message, if that was given the same handles and they are alive.
  [[nodiscard]] Communicator* known(std::uint64_t communicator, std::uint64_t stream) const {
    return communicator_.is(communicator) && stream_.is(stream) ? &*communicator_ : nullptr;
  }

  // Returns whether calls of the communicator have been kept and are not queued yet.
  [[nodiscard]] bool has_calls_of(const Communicator& communicator) const {
    return more_ ? more_->has_calls_of(communicator)
                 : communicator_ && &*communicator_ == &communicator;
  }

  // Keeps a call. Throw Error(hcclInvalidUsage) if the group has too many for the stream, and what
  // queueing throws. The first is for a known communicator, and its stream.
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
  // The same for the parts of one call, at least one: all of them are kept, or none.
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
  // The communicator of the last message. Held, for the program may destroy it before the group
  // ends.
  CommunicatorHold communicator_;
  StreamHold stream_;
  MessageList messages_;
  std::optional<CollectedCalls> more_;  // all calls, from the first one on that is something else
  // Where the last message stands there.
  StreamCalls* on_ = nullptr;
  MessagePart* part_ = nullptr;
};

}  // namespace hccl::comm
