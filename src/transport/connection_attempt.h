// SPDX-License-Identifier: Apache-2.0
// A connection that is being established, on the connecting or on the accepting side.
#pragma once

#include "base/file_descriptor.h"
#include "transport/endpoint.h"
#include "transport/stream_keys.h"

#include <optional>

namespace hccl::transport {

struct Connected {
  FileDescriptor socket;
  ProtectedStream stream;
};

// Thread safety: one thread at a time. No call blocks.
class ConnectionAttempt {
 public:
  ConnectionAttempt() = default;
  virtual ~ConnectionAttempt() = default;
  ConnectionAttempt(const ConnectionAttempt&) = delete;
  ConnectionAttempt& operator=(const ConnectionAttempt&) = delete;

  // Advances the attempt. Returns the socket when both sides have authenticated, and nothing until
  // then. The next byte on the socket belongs to the stream. Throws PeerLost, or
  // Error(hcclSystemError).
  [[nodiscard]] virtual std::optional<Connected> poll() = 0;
  // Adds to the plan the descriptors for which the attempt waits. Shortens the plan's sleep so that
  // poll() is called again when a time limit has passed.
  virtual void plan_sleep(SleepPlan& plan) = 0;
};

}  // namespace hccl::transport
