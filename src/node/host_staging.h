// SPDX-License-Identifier: Apache-2.0
// The copies between a call's host memory and its stream's staging buffer.
#pragma once

#include "call/collective_call.h"
#include "call/point_to_point.h"
#include "device/copy.h"
#include "node/slicing.h"
#include "node/staging.h"

namespace hccl::node {

// Returns whether `rank` reads or writes host memory in the call.
[[nodiscard]] bool uses_host_memory(const CollectiveCall& call, int rank, int ranks);
[[nodiscard]] bool uses_host_memory(const PointToPoint& call);

// Stages the host memory of one collective while it runs.
class HostStaging final : public Staging {
 public:
  HostStaging(device::Arena& arena, device::DeviceAddress buffer, const CollectiveCall& call,
              int rank, int ranks);

  // Returns the call with the staging buffer in place of this rank's host memory.
  [[nodiscard]] const CollectiveCall& staged_call() const { return staged_; }

  [[nodiscard]] bool stages_send() const override { return stages_send_; }
  [[nodiscard]] bool stages_recv() const override { return stages_recv_; }
  void fill(const Slice& slice) override;
  void drain(const Slice& slice) override;

 private:
  device::Arena& arena_;
  const CollectiveCall& call_;
  const Slicing slicing_;
  const int ranks_;
  const bool stages_send_;
  const bool stages_recv_;
  device::HostCheck send_check_ = device::HostCheck::by_copy;
  device::HostCheck recv_check_ = device::HostCheck::by_copy;
  CollectiveCall staged_;
};

}  // namespace hccl::node
