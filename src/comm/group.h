// SPDX-License-Identifier: Apache-2.0
// The way of a validated call to its stream: at once, or with the others between hcclGroupStart and
// hcclGroupEnd of its thread. A send or receive outside is a group of its own.
#pragma once

#include "comm/communicator.h"
#include "device/stream.h"

#include <cstdint>
#include <memory>

namespace hccl::comm {

// What the program calls a communicator and a stream.
struct CallHandles {
  std::uint64_t communicator, stream;
  friend bool operator==(const CallHandles&, const CallHandles&) = default;
};

class Group {
 public:
  static constexpr std::size_t kMostCalls = 1024;  // of one stream

  // Of the calling thread; groups nest. end() throws Error(hcclInvalidUsage) without a start; the
  // outermost one queues what was kept, and throws the first error, having queued the rest.
  static void start();
  static void end();

  // The communicator of the last message that this thread's open group has kept, if that was given
  // the same handles and they are alive: then keep() does what submit() does.
  [[nodiscard]] static Communicator* known(const CallHandles& handles);
  static void keep(const node::CollectiveCall& call);
  static void keep(const node::PointToPoint& call);

  // Queues the call, or keeps it while the thread's group is open. Throws Error(hcclInvalidUsage)
  // if the group has too many for the stream, and what queueing throws.
  static void submit(const CallHandles& handles, const std::shared_ptr<Communicator>& communicator,
                     const std::shared_ptr<device::Stream>& stream,
                     const node::CollectiveCall& call);
  static void submit(const CallHandles& handles, const std::shared_ptr<Communicator>& communicator,
                     const std::shared_ptr<device::Stream>& stream, const node::PointToPoint& call);
};

}  // namespace hccl::comm
