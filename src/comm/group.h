// SPDX-License-Identifier: Apache-2.0
// The calls between hcclGroupStart and hcclGroupEnd of one thread, kept until the outermost group
// ends.
#pragma once

#include "comm/communicator.h"
#include "device/stream.h"

#include <memory>

namespace hccl::comm {

class Group {
 public:
  static constexpr std::size_t kMostCalls = 1024;  // of one stream

  // Of the calling thread. end() throws Error(hcclInvalidUsage) without a start; the outermost one
  // queues what was collected: for each stream the collectives in the order of the calls, then all
  // sends and receives of a communicator together. Throws the first error, having queued the rest.
  static void start();
  static void end();
  [[nodiscard]] static bool is_open() noexcept;

  // While the thread's group is open: keeps a validated call. Throws Error(hcclInvalidUsage) if the
  // stream has too many.
  template <class Call>
  static void add(std::shared_ptr<Communicator> communicator,
                  std::shared_ptr<device::Stream> stream, Call call);
};

}  // namespace hccl::comm
