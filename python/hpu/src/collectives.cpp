// SPDX-License-Identifier: Apache-2.0
// Passes torch.distributed's operations on HPU tensors to the group's backend for the device.
#include "registration.h"

#include <chrono>
#include <tuple>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace hccl_torch_hpu {

namespace {

using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using Reduction = c10::intrusive_ptr<c10d::ReduceOp>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

c10d::Backend& backend(const Group& group) { return *group->getBackend(c10::DeviceType::HPU); }

// Returns options with asyncOp and timeout set. Most collectives have both options.
template <class Options>
Options with(bool is_async, std::int64_t timeout) {
  Options options;
  options.asyncOp = is_async;
  options.timeout = std::chrono::milliseconds(timeout);
  return options;
}

template <class Options>
Options with(const Reduction& reduction, bool is_async, std::int64_t timeout) {
  auto options = with<Options>(is_async, timeout);
  options.reduceOp = *reduction;
  return options;
}

template <class Options>
Options with(std::int64_t root, bool is_async, std::int64_t timeout) {
  auto options = with<Options>(is_async, timeout);
  options.rootRank = root;
  return options;
}

WorkPtr send(at::TensorList tensors, const Group& group, std::int64_t to, std::int64_t tag) {
  Tensors list = tensors.vec();
  return backend(group).send(list, static_cast<int>(to), static_cast<int>(tag));
}

WorkPtr recv(at::TensorList tensors, const Group& group, std::int64_t from, std::int64_t tag) {
  Tensors list = tensors.vec();
  return backend(group).recv(list, static_cast<int>(from), static_cast<int>(tag));
}

WorkPtr recv_any_source(at::TensorList tensors, const Group& group, std::int64_t tag) {
  Tensors list = tensors.vec();
  return backend(group).recvAnysource(list, static_cast<int>(tag));
}

std::tuple<Tensors, WorkPtr> broadcast(at::TensorList tensors, const Group& group,
                                       std::int64_t root, std::int64_t tensor, bool is_async,
                                       std::int64_t timeout) {
  auto options = with<c10d::BroadcastOptions>(root, is_async, timeout);
  options.rootTensor = tensor;
  Tensors list = tensors.vec();
  WorkPtr work = backend(group).broadcast(list, options);
  return {std::move(list), std::move(work)};
}

std::tuple<Tensors, WorkPtr> allreduce(at::TensorList tensors, const Group& group,
                                       const Reduction& reduction,
                                       const std::optional<at::Tensor>& sparse_indices,
                                       bool is_async, std::int64_t timeout) {
  auto options = with<c10d::AllreduceOptions>(reduction, is_async, timeout);
  options.sparseIndices = sparse_indices;
  Tensors list = tensors.vec();
  WorkPtr work = backend(group).allreduce(list, options);
  return {std::move(list), std::move(work)};
}

WorkPtr allreduce_coalesced(at::TensorList tensors, const Group& group, const Reduction& reduction,
                            bool is_async, std::int64_t timeout) {
  Tensors list = tensors.vec();
  return backend(group).allreduce_coalesced(
      list, with<c10d::AllreduceCoalescedOptions>(reduction, is_async, timeout));
}

WorkPtr reduce(at::TensorList tensors, const Group& group, const Reduction& reduction,
               std::int64_t root, std::int64_t tensor, bool is_async, std::int64_t timeout) {
  auto options = with<c10d::ReduceOptions>(reduction, is_async, timeout);
  options.rootRank = root;
  options.rootTensor = tensor;
  Tensors list = tensors.vec();
  return backend(group).reduce(list, options);
}

std::tuple<TensorLists, WorkPtr> allgather(const TensorLists& outputs, at::TensorList inputs,
                                           const Group& group, bool is_async,
                                           std::int64_t timeout) {
  TensorLists lists = outputs;
  Tensors list = inputs.vec();
  WorkPtr work =
      backend(group).allgather(lists, list, with<c10d::AllgatherOptions>(is_async, timeout));
  return {std::move(lists), std::move(work)};
}

std::tuple<at::Tensor, WorkPtr> allgather_base(at::Tensor& output, at::Tensor& input,
                                               const Group& group, bool is_async,
                                               std::int64_t timeout) {
  WorkPtr work = backend(group)._allgather_base(output, input,
                                                with<c10d::AllgatherOptions>(is_async, timeout));
  return {output, std::move(work)};
}

WorkPtr allgather_coalesced(const TensorLists& outputs, const at::TensorList& inputs,
                            const Group& group, bool is_async) {
  TensorLists lists = outputs;
  Tensors list = inputs.vec();
  c10d::AllgatherOptions options;
  options.asyncOp = is_async;
  return backend(group).allgather_coalesced(lists, list, options);
}

WorkPtr allgather_into_tensor_coalesced(at::TensorList outputs, at::TensorList inputs,
                                        const Group& group, bool is_async) {
  Tensors to = outputs.vec();
  Tensors from = inputs.vec();
  c10d::AllgatherOptions options;
  options.asyncOp = is_async;
  return backend(group).allgather_into_tensor_coalesced(to, from, options);
}

std::tuple<Tensors, WorkPtr> reduce_scatter(const at::TensorList& outputs,
                                            const TensorLists& inputs, const Group& group,
                                            const Reduction& reduction, bool is_async,
                                            std::int64_t timeout) {
  Tensors to = outputs.vec();
  TensorLists from = inputs;
  WorkPtr work = backend(group).reduce_scatter(
      to, from, with<c10d::ReduceScatterOptions>(reduction, is_async, timeout));
  return {std::move(to), std::move(work)};
}

std::tuple<at::Tensor, WorkPtr> reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                    const Group& group, const Reduction& reduction,
                                                    bool is_async, std::int64_t timeout) {
  WorkPtr work = backend(group)._reduce_scatter_base(
      output, input, with<c10d::ReduceScatterOptions>(reduction, is_async, timeout));
  return {output, std::move(work)};
}

WorkPtr reduce_scatter_tensor_coalesced(at::TensorList outputs, at::TensorList inputs,
                                        const Group& group, const Reduction& reduction,
                                        bool is_async, std::int64_t timeout) {
  Tensors to = outputs.vec();
  Tensors from = inputs.vec();
  return backend(group).reduce_scatter_tensor_coalesced(
      to, from, with<c10d::ReduceScatterOptions>(reduction, is_async, timeout));
}

WorkPtr gather(const TensorLists& outputs, const at::TensorList& inputs, const Group& group,
               std::int64_t root, bool is_async, std::int64_t timeout) {
  TensorLists to = outputs;
  Tensors from = inputs.vec();
  return backend(group).gather(to, from, with<c10d::GatherOptions>(root, is_async, timeout));
}

std::tuple<Tensors, WorkPtr> scatter(const at::TensorList& outputs, const TensorLists& inputs,
                                     const Group& group, std::int64_t root, bool is_async,
                                     std::int64_t timeout) {
  Tensors to = outputs.vec();
  TensorLists from = inputs;
  WorkPtr work =
      backend(group).scatter(to, from, with<c10d::ScatterOptions>(root, is_async, timeout));
  return {std::move(to), std::move(work)};
}

std::tuple<Tensors, WorkPtr> alltoall(const at::TensorList& outputs, const at::TensorList& inputs,
                                      const Group& group, bool is_async, std::int64_t timeout) {
  Tensors to = outputs.vec();
  Tensors from = inputs.vec();
  WorkPtr work = backend(group).alltoall(to, from, with<c10d::AllToAllOptions>(is_async, timeout));
  return {std::move(to), std::move(work)};
}

WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, const Group& group,
                      std::vector<std::int64_t> output_sizes, std::vector<std::int64_t> input_sizes,
                      bool is_async, std::int64_t timeout) {
  return backend(group).alltoall_base(output, input, output_sizes, input_sizes,
                                      with<c10d::AllToAllOptions>(is_async, timeout));
}

WorkPtr barrier(at::Tensor /*tensor*/, const Group& group,
                const std::vector<std::int64_t>& device_ids, bool is_async, std::int64_t timeout) {
  auto options = with<c10d::BarrierOptions>(is_async, timeout);
  options.device_ids = device_ids;
  return backend(group).barrier(options);
}

}  // namespace

void register_collectives() {
  torch::Library& library = library_for("c10d", c10::DispatchKey::HPU);
  library.impl("send", &send);
  library.impl("recv_", &recv);
  library.impl("recv_any_source_", &recv_any_source);
  library.impl("broadcast_", &broadcast);
  library.impl("allreduce_", &allreduce);
  library.impl("allreduce_coalesced_", &allreduce_coalesced);
  library.impl("reduce_", &reduce);
  library.impl("allgather_", &allgather);
  library.impl("_allgather_base_", &allgather_base);
  library.impl("allgather_coalesced_", &allgather_coalesced);
  library.impl("allgather_into_tensor_coalesced_", &allgather_into_tensor_coalesced);
  library.impl("reduce_scatter_", &reduce_scatter);
  library.impl("_reduce_scatter_base_", &reduce_scatter_base);
  library.impl("reduce_scatter_tensor_coalesced_", &reduce_scatter_tensor_coalesced);
  library.impl("gather_", &gather);
  library.impl("scatter_", &scatter);
  library.impl("alltoall_", &alltoall);
  library.impl("alltoall_base_", &alltoall_base);
  library.impl("barrier", &barrier);
}

}  // namespace hccl_torch_hpu
