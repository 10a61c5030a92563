// SPDX-License-Identifier: Apache-2.0
// The emulated device of this process.
#pragma once

#include <synapse_api.h>

#include <cstdint>
#include <mutex>

namespace hccl_torch {

// Initialises the runtime and acquires a device at the first use; both stay until the process ends.
// Thread-safe. Throws c10::DistBackendError.
[[nodiscard]] synDeviceId device();

// A stream of the device. Throws c10::DistBackendError.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] synStreamHandle get() const noexcept { return handle_; }

 private:
  synStreamHandle handle_ = nullptr;
};

// A point in a stream's work.
class Event {
 public:
  explicit Event(const Stream& stream);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Returns whether the work before it has ended, well or not.
  [[nodiscard]] bool has_ended() const;
  // Blocks until the work before it has ended. Returns true if it has ended well.
  [[nodiscard]] bool synchronize() const;

 private:
  synEventHandle handle_ = nullptr;
};

}  // namespace hccl_torch
