// SPDX-License-Identifier: Apache-2.0
// The state behind the syn* calls: initialisation, the devices that this process holds, and the
// handles of streams and events.
#pragma once

#include "base/config.h"
#include "base/handle_table.h"
#include "device/device.h"
#include "device/event.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace hccl::device {

class Runtime {
 public:
  // Returns the process's runtime. It is never destroyed, because programs call it from static
  // destructors.
  [[nodiscard]] static Runtime& instance();

  // Reads the environment. A second call does nothing, or throws SynError(synAlreadyInitialized) if
  // Config::refuse_double_initialize is set.
  void initialize();
  // Completes all work and releases all objects; afterwards initialize() may be called again.
  // Blocks. Throws as require_initialized() does.
  void destroy();
  [[nodiscard]] bool initialized() const noexcept {
    return initialized_.load(std::memory_order_acquire);
  }
  // Throws SynError(synUninitialized) unless initialized() returns true.
  void require_initialized() const;

  // Acquires module `module` or, if none is given, the first free module, even one beyond the
  // node's number of devices. Makes the device the calling thread's current device. Throws
  // SynError(synUnavailable) if the module is held or no module is free, SynError(synNoDeviceFound)
  // if the module does not exist, SynError(synDeviceAlreadyAcquired) for a second device if
  // HCCL_STRICT is set, and Error(hcclSystemError) as claim_module() does.
  std::shared_ptr<Device> acquire(std::optional<std::uint32_t> module);
  // Runs the work of the device's streams, destroys them and releases the device. Throws as
  // device() does.
  void release(std::uint32_t device_id);

  // Throws SynError(synInvalidArgument) if this process does not hold the device with that id.
  [[nodiscard]] std::shared_ptr<Device> device(std::uint32_t device_id);
  // Returns the device that the calling thread acquired last, if the process still holds it, and
  // otherwise the process's device with the lowest id. Returns null if the process holds no device.
  [[nodiscard]] std::shared_ptr<Device> current();
  [[nodiscard]] std::vector<std::shared_ptr<Device>> devices();

  HandleTable<Stream>& streams() noexcept { return streams_; }
  HandleTable<Event>& events() noexcept { return events_; }

  [[nodiscard]] static std::uint64_t device_memory_bytes(const Config& config);

 private:
  void destroy_streams_of(const Device& device);

  std::atomic<bool> initialized_{false};
  std::mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<Device>> devices_;
  HandleTable<Stream> streams_{HandleKind::stream};
  HandleTable<Event> events_{HandleKind::event};
};

}  // namespace hccl::device
