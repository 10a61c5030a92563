// SPDX-License-Identifier: Apache-2.0
// Registers device memory with the transports, which then send from it and receive into it without
// a copy.
#pragma once

#include "device/arena.h"
#include "transport/transport.h"

#include <memory>
#include <mutex>
#include <vector>

namespace hccl::network {

// Thread safety: any thread.
class NetworkMemory final : public device::PageWatcher {
 public:
  // Both arguments must outlive the object.
  NetworkMemory(device::Arena& arena,
                const std::vector<std::unique_ptr<transport::Transport>>& transports);
  ~NetworkMemory() override;

  // Registers the windows of the arena that contain the buffer. Does nothing if the buffer is in
  // host memory or is smaller than 4 KiB, or if no transport registers memory.
  void register_memory(std::uint64_t address, std::uint64_t bytes);
  void pages_freed(std::uint64_t file_offset, std::uint64_t bytes) noexcept override;

 private:
  device::Arena& arena_;
  std::vector<transport::Transport*> registering_;
  std::mutex mutex_;
  std::vector<bool> registered_;  // by window
};

}  // namespace hccl::network
