// SPDX-License-Identifier: Apache-2.0
// Acquires and releases devices.
#include "device/runtime.h"

#include "base/log.h"
#include "base/process.h"
#include "base/syn_error.h"
#include "base/text.h"
#include "device/module_registry.h"
#include "device/notifier.h"

#include <hccl_types.h>

#include <algorithm>

namespace hccl::device {
namespace {

// The device that the thread acquired last.
thread_local std::weak_ptr<Device> current_device;

// Limits the search for a free module. No node has this many modules.
constexpr std::uint32_t kMaxModules = 4096;

// Claims the first free module and sets `module` to its number.
FileDescriptor claim_any_module(std::uint32_t& module, std::uint32_t devices_of_node) {
  for (module = 0; module < kMaxModules; ++module) {
    if (auto claim = claim_module(module)) return *std::move(claim);
  }
  // No node has kMaxModules devices in use, but another user may have bound that many names.
  for (module = 0; module < devices_of_node; ++module) {
    if (auto claim = claim_module_by_lock(module)) return *std::move(claim);
  }
  throw SynError(synUnavailable, text("no module below ", kMaxModules,
                                      " is free; set HCCL_NODE_ID to emulate another node"));
}

}  // namespace

Runtime& Runtime::instance() {
  static auto* runtime = new Runtime;
  return *runtime;
}

std::uint64_t Runtime::device_memory_bytes(const Config& config) {
  if (config.device_memory != 0) return round_up(config.device_memory, kHugePageBytes);
  return (config.device_type == EmulatedDevice::gaudi3 ? 128ull : 96ull) << 30;
}

void Runtime::initialize() {
  const std::lock_guard lock(mutex_);
  if (initialized()) {
    if (config()->refuse_double_initialize) {
      throw SynError(synAlreadyInitialized,
                     "synInitialize was called before; call it once, or unset "
                     "HABANA_DISABLE_DOUBLE_SYN_INITIALIZE");
    }
    return;
  }
  load_config();
  install_fork_guard();
  if (config()->log_version) {
    log_line(LogLevel::info, "version",
             text("hccl " HCCL_LIBRARY_VERSION ", interface ", HCCL_MAJOR, '.', HCCL_MINOR, '.',
                  HCCL_PATCH, ", emulated devices"));
  }
  if (const std::string unknown = unknown_variables(); !unknown.empty()) {
    log(LogLevel::warning, "config", "unknown variables ignored: ", unknown,
        "; see docs/reference/environment.md");
  }
  initialized_.store(true, std::memory_order_release);
}

void Runtime::require_initialized() const {
  if (!initialized()) throw SynError(synUninitialized, "call synInitialize first");
}

void Runtime::destroy() {
  require_initialized();
  for (;;) {
    std::uint32_t id = 0;
    {
      const std::lock_guard lock(mutex_);
      if (devices_.empty()) break;
      id = devices_.begin()->first;
    }
    release(id);
  }
  Notifier::instance().stop();
  for (const std::uint64_t handle : events_.handles()) static_cast<void>(events_.remove(handle));
  initialized_.store(false, std::memory_order_release);
}

std::shared_ptr<Device> Runtime::acquire(std::optional<std::uint32_t> module) {
  require_initialized();
  const auto settings = config();
  const std::lock_guard lock(mutex_);
  if (settings->strict && !devices_.empty()) {
    throw SynError(synDeviceAlreadyAcquired,
                   "HCCL_STRICT=1 allows one device per process; release the held device first");
  }
  std::optional<FileDescriptor> claim;
  if (module) {
    if (*module >= static_cast<std::uint32_t>(settings->device_count)) {
      throw SynError(synNoDeviceFound,
                     text("module ", *module, " does not exist: this node has ",
                          settings->device_count, " modules; raise HCCL_DEVICE_COUNT"));
    }
    claim = claim_module(*module);
    if (!claim) claim = claim_module_by_lock(*module);
    if (!claim) {
      throw SynError(synUnavailable,
                     text("module ", *module, " is held by ", holder_text(*module),
                          "; release the module in that process, acquire another module, or set "
                          "HCCL_NODE_ID to emulate a second node"));
    }
  } else {
    module = 0;
    claim = claim_any_module(*module, static_cast<std::uint32_t>(settings->device_count));
  }
  std::uint32_t id = 0;
  while (devices_.contains(id)) ++id;
  auto device = std::make_shared<Device>(
      id, *module, std::move(*claim), device_memory_bytes(*settings), settings->keep_freed_memory);
  devices_.emplace(id, device);
  current_device = device;
  return device;
}

void Runtime::release(std::uint32_t device_id) {
  require_initialized();
  const auto released = device(device_id);
  destroy_streams_of(*released);
  const std::lock_guard lock(mutex_);
  devices_.erase(device_id);
}

void Runtime::destroy_streams_of(const Device& device) {
  for (const std::uint64_t handle : streams_.handles()) {
    std::shared_ptr<Stream> stream;
    if (const auto pinned = streams_.pin(handle); pinned && &pinned->device() == &device) {
      stream = pinned.shared();
    }
    if (!stream) continue;
    stream->device().destroy_stream(stream);
    static_cast<void>(streams_.remove(handle));
  }
}

std::shared_ptr<Device> Runtime::device(std::uint32_t device_id) {
  const std::lock_guard lock(mutex_);
  const auto entry = devices_.find(device_id);
  if (entry == devices_.end()) {
    throw SynError(synInvalidArgument,
                   text("device ", device_id,
                        " is not held by this process; pass the id of an acquired device"));
  }
  return entry->second;
}

std::shared_ptr<Device> Runtime::current() {
  if (auto device = current_device.lock()) {
    const std::lock_guard lock(mutex_);
    const auto entry = devices_.find(device->id());
    if (entry != devices_.end() && entry->second == device) return device;
  }
  const std::lock_guard lock(mutex_);
  return devices_.empty() ? nullptr : devices_.begin()->second;
}

std::vector<std::shared_ptr<Device>> Runtime::devices() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Device>> held;
  for (const auto& [id, device] : devices_) held.push_back(device);
  return held;
}

}  // namespace hccl::device
