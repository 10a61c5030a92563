// SPDX-License-Identifier: Apache-2.0
// The c10d backend "hccl". The collective and message methods each start an operation and return
// its Work. Tensors are in CPU memory or on the emulated device. Methods throw
// c10::DistBackendError for calls that the library refuses, c10::TypeError for unsupported types
// and reductions, and c10::ValueError for other invalid arguments.
#pragma once

#include "communicator.h"
#include "messages.h"
#include "operation_queue.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace hccl_torch {

class ProcessGroupHccl final : public c10d::Backend {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;

  // Joins the group. Blocks until all ranks have joined.
  ProcessGroupHccl(const c10::intrusive_ptr<c10d::Store>& store, GroupIdentity identity,
                   std::chrono::milliseconds timeout);
  // Does not wait for other ranks.
  ~ProcessGroupHccl() override;

  // Blocks until no group's callbacks are running. Call it before the interpreter shuts down. Waits
  // a few seconds for operations whose futures have been requested. Then aborts the groups in which
  // such operations have not ended or receives still wait in the matcher. If a group's callbacks
  // still run a few seconds later, prevents further callbacks, waits once more and gives up.
  static void quiesce_all();

  const std::string getBackendName() const override { return "hccl"; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  bool supportsCoalescing() const override { return true; }
  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                          const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options) override;
  bool supportsTensorAlloc(c10::DeviceIndex index) override;
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;
  void startCoalescing() override;
  WorkPtr endCoalescing() override;
  void setTimeout(std::chrono::milliseconds timeout) override;
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override;
  void abort() override;
  void shutdown() override;
  c10d::ErrorType getError() override;

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& output_lists, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                        std::vector<std::int64_t>& output_sizes,
                        std::vector<std::int64_t>& input_sizes,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr send(Tensors& tensors, int peer, int tag) override;
  WorkPtr recv(Tensors& tensors, int peer, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

 private:
  [[nodiscard]] hcclComm_t comm() const { return communicator_->get(); }
  void quiesce(std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] void* stream() const { return communicator_->stream().get(); }
  // Returns `root`. Throws c10::ValueError if it is not a rank of the group.
  [[nodiscard]] int checked_root(std::int64_t root, const char* call) const;
  WorkPtr all_reduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options);
  void all_reduce(Issue& issue, at::Tensor& tensor, const c10d::ReduceOp& operation);
  void all_gather(Issue& issue, at::Tensor& output, const at::Tensor& input);
  void all_gather_list(Issue& issue, Tensors& outputs, const at::Tensor& input);
  void broadcast_each(Issue& issue, Tensors& outputs, const at::Tensor& from);
  void reduce_scatter(Issue& issue, at::Tensor& output, const at::Tensor& input,
                      const c10d::ReduceOp& operation);

  const c10::intrusive_ptr<Options> options_;
  const std::shared_ptr<Communicator> communicator_;
  OperationQueue queue_;
  std::unique_ptr<Messages> messages_;  // destroyed before the queue
};

}  // namespace hccl_torch
