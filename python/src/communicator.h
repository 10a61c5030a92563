// SPDX-License-Identifier: Apache-2.0
// One rank's membership in the communicator of a process group, and the stream its calls run on.
#pragma once

#include "device.h"

#include <hccl.h>

#include <atomic>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace hccl_torch {

class Communicator {
 public:
  // Joins as `rank` of `size`; rank 0 passes the id to the others through `store`. Blocks until all
  // ranks have joined. Throws c10::DistBackendError.
  Communicator(c10d::Store& store, int rank, int size, const std::string& group);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] hcclComm_t get() const noexcept { return handle_; }
  [[nodiscard]] const Stream& stream() const noexcept { return stream_; }

  // Returns why the communicator has failed, an empty text if it has not.
  [[nodiscard]] std::string fault() const;
  // Fails all work on every rank. Does not block.
  void abort() noexcept;
  // Blocks until all queued work has run, or the communicator has failed.
  void finalize() noexcept;

 private:
  Stream stream_;
  hcclComm_t handle_ = nullptr;
  std::atomic<bool> aborted_{false};
};

}  // namespace hccl_torch
