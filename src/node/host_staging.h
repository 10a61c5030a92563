// SPDX-License-Identifier: Apache-2.0
// Copies data between a call's host memory and its stream's staging buffer.
#pragma once

#include "call/collective_call.h"
#include "call/point_to_point.h"
#include "device/copy.h"
#include "node/slicing.h"

namespace hccl::node {

// Returns whether `rank` reads or writes host memory in the call.
[[nodiscard]] bool uses_host_memory(const CollectiveCall& call, int rank, int ranks);
[[nodiscard]] bool uses_host_memory(const PointToPoint& call);
// Returns whether `rank` uses host memory, and the call's data does not fit into a slot.
[[nodiscard]] bool needs_staging(const CollectiveCall& call, int rank, int ranks);
// Returns whether all buffers that `rank` uses in the call are in host memory. As in is_on_host(),
// the receive buffer of a broadcast's root may be anywhere.
[[nodiscard]] bool uses_only_host_memory(const CollectiveCall& call, int rank, int ranks);
// Returns whether all buffers that `rank` uses in the call are staged. The root of a broadcast
// receives nothing from other ranks, so its receive buffer may be anywhere.
[[nodiscard]] bool is_on_host(const CollectiveCall& call, int rank, bool send_is_staged,
                              bool recv_is_staged);

// Copies a rank's host memory, which peers cannot map, to and from a staging buffer, which peers
// can map. Serves one collective.
class HostStaging {
 public:
  HostStaging(device::Arena& arena, device::DeviceAddress buffer, const CollectiveCall& call,
              int rank, int ranks);

  // Returns the call with the staging buffer in place of this rank's host memory.
  [[nodiscard]] const CollectiveCall& staged_call() const { return staged_; }

  // Returns the call with the addresses that the program has passed.
  [[nodiscard]] const CollectiveCall& host_call() const { return call_; }
  [[nodiscard]] device::DeviceAddress buffer() const { return buffer_; }
  [[nodiscard]] bool stages_send() const { return stages_send_; }
  [[nodiscard]] bool stages_recv() const { return stages_recv_; }
  // fill() copies a slice of this rank's input to the staging buffer. drain() copies a slice of
  // this rank's result from the staging buffer to the program's memory. They do nothing for buffers
  // in device memory. The staging buffer holds the slice of every chunk contiguously, at
  // Slicing::offset_in(). Throw Error.
  void fill(const Slice& slice);
  void drain(const Slice& slice);

 private:
  device::Arena& arena_;
  const device::DeviceAddress buffer_;
  const CollectiveCall& call_;
  const Slicing slicing_;
  const int ranks_;
  const bool stages_send_;
  const bool drains_;       // whether this rank's result goes to host memory
  const bool stages_recv_;  // drains_, or the staged send buffer is also the receive buffer
  // Calls that run on the host path never copy, so the first copy checks the buffer.
  device::HostCheck send_check_ = device::HostCheck::by_copy;
  device::HostCheck recv_check_ = device::HostCheck::by_copy;
  CollectiveCall staged_;
};

}  // namespace hccl::node
