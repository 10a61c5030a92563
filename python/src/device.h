// SPDX-License-Identifier: Apache-2.0
// The emulated device of this process, and its streams.
#pragma once

#include <synapse_api.h>

#include <cstdint>

#include <hccl_emulation.h>

namespace hccl_torch {

// Returns the device. The first call initialises the Synapse runtime and acquires the device, which
// this process then keeps until it ends. Throws c10::DistBackendError. Thread safety: any thread.
[[nodiscard]] synDeviceId device();

// A stream of the device.
class Stream {
 public:
  // Creates a stream. Throws c10::DistBackendError.
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] synStreamHandle get() const noexcept { return handle_; }
  // Returns the number of work items queued so far.
  [[nodiscard]] std::uint64_t queued() const noexcept;

 private:
  synStreamHandle handle_ = nullptr;
};

// The work items on `stream` after position `after`, up to and including position `last`. The
// stream must outlive this object.
struct StreamRange {
  const Stream* stream = nullptr;
  std::uint64_t after = 0;
  std::uint64_t last = 0;

  // Returns whether all of the work has run. Also returns true if the library no longer knows the
  // stream. Neither blocks nor wakes a thread that could run the work.
  [[nodiscard]] bool has_run() const noexcept;
  // Blocks until the work has run, but for at most `milliseconds` (HCCL_EMULATION_NO_TIMEOUT for no
  // limit). Returns hcclBusy on a time-out, else the outcome of the work. hcclGetLastErrorMessage()
  // returns the reason for a failure.
  [[nodiscard]] hcclResult_t wait(std::uint64_t milliseconds) const noexcept;
};

}  // namespace hccl_torch
