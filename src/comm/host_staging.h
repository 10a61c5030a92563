// SPDX-License-Identifier: Apache-2.0
// The copies between a call's host memory and its stream's stage.
#pragma once

#include "call/collective_call.h"
#include "call/point_to_point.h"
#include "comm/staging_buffer.h"
#include "device/copy.h"
#include "node/slicing.h"
#include "node/staging.h"

namespace hccl::comm {

// Returns whether `rank` reads or writes host memory in the call.
[[nodiscard]] bool uses_host_memory(const CollectiveCall& call, int rank, int ranks);
[[nodiscard]] bool uses_host_memory(const PointToPoint& call);

// Stages the host memory of one collective while it runs.
class HostStaging final : public node::Staging {
 public:
  HostStaging(device::Arena& arena, const StagingBuffer& stage, const CollectiveCall& call,
              int rank, int ranks);

  // The call on the stage.
  [[nodiscard]] const CollectiveCall& staged_call() const { return staged_; }

  [[nodiscard]] bool stages_send() const override { return stages_send_; }
  [[nodiscard]] bool stages_recv() const override { return stages_recv_; }
  void fill(const node::Slice& slice) override;
  void drain(const node::Slice& slice) override;

 private:
  device::Arena& arena_;
  const CollectiveCall& call_;
  const node::Slicing slicing_;
  const int ranks_;
  const bool stages_send_;
  const bool stages_recv_;
  device::HostCheck send_check_ = device::HostCheck::by_copy;
  device::HostCheck recv_check_ = device::HostCheck::by_copy;
  CollectiveCall staged_;
};

// Copies between device and host memory in any combination; `stage` may be null unless both are the
// host's.
void copy_anywhere(device::Arena& arena, const StagingBuffer* stage, std::uint64_t to,
                   std::uint64_t from, std::uint64_t bytes);

}  // namespace hccl::comm
