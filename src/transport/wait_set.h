// SPDX-License-Identifier: Apache-2.0
// A thread that moves bytes sleeps on this when polling has not helped: on its endpoints, and a
// bell that others ring.
#pragma once

#include "base/deadline.h"
#include "base/file_descriptor.h"
#include "transport/endpoint.h"

#include <cstdint>
#include <span>

namespace hccl::transport {

// Used by one thread, but for ring(). Endpoints are named anew for each wait: sets are small and
// change from wait to wait, so poll(2) is cheaper than telling epoll of every change.
class WaitSet {
 public:
  struct Entry {
    Endpoint* endpoint = nullptr;
    Interest interest;
  };
  enum class Outcome : std::uint8_t {
    ready,    // an endpoint may go on; it may also be lost, which its next call says
    rung,     // somebody has called ring() since the last wait that ended so
    expired,  // the deadline has passed
  };

  // Throws Error(hcclSystemError).
  WaitSet();

  // Blocks until one of these. No wake-up is lost, whenever it comes; some are for nothing: after
  // `ready`, every endpoint wants to be called, since that is what carries it on.
  // Throws Error(hcclSystemError) where the endpoints cannot be waited for.
  [[nodiscard]] Outcome wait(std::span<const Entry> entries, Deadline deadline);

  // Ends the wait in progress or else the next one. Any thread.
  void ring() noexcept;

 private:
  [[nodiscard]] bool take_ring() noexcept;
  [[nodiscard]] Outcome sleep(Deadline deadline);

  FileDescriptor bell_;
  SleepPlan plan_;
};

}  // namespace hccl::transport
