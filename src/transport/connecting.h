// SPDX-License-Identifier: Apache-2.0
// The way to a connected socket, from either side.
#pragma once

#include "base/file_descriptor.h"
#include "transport/endpoint.h"

#include <optional>

namespace hccl::transport {

// One thread; no call blocks.
class Connecting {
 public:
  Connecting() = default;
  virtual ~Connecting() = default;
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

  // Carries it on. The socket, once both sides have proved themselves; its next byte is the
  // stream's. Throws PeerLost or Error.
  [[nodiscard]] virtual std::optional<FileDescriptor> poll() = 0;
  // Adds what to wait for before the next poll().
  virtual void plan_sleep(SleepPlan& plan) = 0;
};

}  // namespace hccl::transport
