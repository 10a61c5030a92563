// SPDX-License-Identifier: Apache-2.0
// An emulated accelerator that this process has acquired: its memory and its streams.
#pragma once

#include "base/file_descriptor.h"
#include "device/arena.h"
#include "device/stream.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hccl::device {

class Device {
 public:
  // `id` is unique within the process and `module` within the node; `claim` holds the module.
  // `keep_bytes`: see Arena.
  Device(std::uint32_t id, std::uint32_t module, FileDescriptor claim, std::uint64_t memory_bytes,
         std::uint64_t keep_bytes = 0);

  [[nodiscard]] std::shared_ptr<Stream> create_stream();
  // Runs the stream's queued work, then removes the stream from the device.
  void destroy_stream(const std::shared_ptr<Stream>& stream);
  [[nodiscard]] std::vector<std::shared_ptr<Stream>> streams() const;
  // Returns whether all streams other than `stream` have completed their work.
  [[nodiscard]] bool others_idle(const Stream& stream) const;
  // Blocks until all streams have run their work. Returns the worst outcome. If that outcome is a
  // failure and `reason` is not null, stores the reason there.
  [[nodiscard]] Outcome synchronize(std::string* reason = nullptr);

  // Releases an allocation, which is freed once all work queued so far has run. Does not block.
  // Throws as Arena::release() does.
  void free_memory(DeviceAddress address);

  [[nodiscard]] Arena& arena() noexcept { return arena_; }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] std::uint32_t module() const noexcept { return module_; }

 private:
  const std::uint32_t id_;
  const std::uint32_t module_;
  FileDescriptor claim_;
  Arena arena_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::atomic<std::size_t> stream_count_{0};
};

// Returns the PCI bus id of a module: "0000:10:00.0" for module 0.
[[nodiscard]] std::string pci_bus_id(std::uint32_t module);

}  // namespace hccl::device
