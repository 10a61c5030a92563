// SPDX-License-Identifier: Apache-2.0
// Lets a thread sleep until one of several endpoints may make progress, or another thread rings.
#pragma once

#include "base/deadline.h"
#include "base/file_descriptor.h"
#include "transport/endpoint.h"

#include <cstdint>
#include <span>

namespace hccl::transport {

// Thread safety: one thread, except ring(). The endpoints are passed to each wait: sets are small
// and change from wait to wait, so poll(2) is cheaper than updating an epoll set.
class WaitSet {
 public:
  struct Entry {
    Endpoint* endpoint = nullptr;
    Interest interest;
  };
  enum class WakeReason : std::uint8_t {
    ready,    // an endpoint may make progress, or its next call reports a lost peer
    rung,     // ring() was called since the last wait that returned `rung`
    expired,  // the deadline has passed
  };

  // Throws Error(hcclSystemError).
  WaitSet();

  // Blocks until one of the WakeReasons applies. No wake-up is lost, but some may be spurious.
  // After `ready`, call every endpoint, because endpoints make progress only within calls. Throws
  // Error(hcclSystemError) if poll(2) fails.
  [[nodiscard]] WakeReason wait(std::span<const Entry> entries, Deadline deadline);

  // Ends the current wait or, if there is none, the next wait. Thread safety: any thread.
  void ring() noexcept;

 private:
  [[nodiscard]] bool consume_ring() noexcept;
  [[nodiscard]] WakeReason sleep(Deadline deadline);

  FileDescriptor bell_;
  SleepPlan plan_;
};

}  // namespace hccl::transport
