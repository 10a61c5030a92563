// SPDX-License-Identifier: Apache-2.0
#include "process_group.h"

#include "allocator.h"
#include "call.h"
#include "element_type.h"
#include "live_groups.h"
#include "sparse_sum.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/ATen.h>

namespace hccl_torch {

namespace {

const at::Tensor& single(const std::vector<at::Tensor>& tensors, const char* call) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "hccl_torch: ", call, " takes one tensor, not ",
                    tensors.size());
  return tensors[0];
}

// Returns this rank's input to a reduction: the elements of `tensor`, multiplied by the factor if
// there is one.
at::Tensor operand(Issue& issue, const at::Tensor& tensor, const Reduction& reduction) {
  if (!reduction.factor.defined()) return issue.input(tensor);
  issue.await_writers(tensor);
  return issue.input(tensor * reduction.factor);
}

}  // namespace

ProcessGroupHccl::ProcessGroupHccl(const c10::intrusive_ptr<c10d::Store>& store,
                                   GroupIdentity identity, std::chrono::milliseconds timeout)
    : Backend(identity.rank, identity.size),
      options_(c10::make_intrusive<Options>("hccl", timeout)),
      communicator_(std::make_shared<Communicator>(*store, identity, timeout)),
      queue_(communicator_),
      messages_(std::make_unique<Messages>(queue_, communicator_)) {
  options_->group_name = identity.name;
  options_->global_ranks_in_group.assign(identity.global_ranks.begin(),
                                         identity.global_ranks.end());
  LiveGroups::instance().add(*this);
}

void ProcessGroupHccl::startCoalescing() { queue_.start_coalescing(); }

ProcessGroupHccl::WorkPtr ProcessGroupHccl::endCoalescing() { return queue_.end_coalescing(); }

std::uint64_t ProcessGroupHccl::getSequenceNumberForGroup() { return queue_.sequence(); }

void ProcessGroupHccl::setTimeout(std::chrono::milliseconds timeout) {
  communicator_->set_timeout(timeout);
  options_->timeout = timeout;
}

void ProcessGroupHccl::abort() { communicator_->abort(); }

c10d::ErrorType ProcessGroupHccl::getError() {
  return communicator_->fault().empty() ? c10d::ErrorType::SUCCESS : c10d::ErrorType::COMM_ERROR;
}

c10::intrusive_ptr<c10d::Backend> ProcessGroupHccl::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Options>& options) {
  const auto own = std::find(ranks.begin(), ranks.end(), getRank());
  if (own == ranks.end()) return nullptr;
  GroupIdentity part;
  part.name = options->group_name;
  part.rank = static_cast<int>(own - ranks.begin());
  part.size = static_cast<int>(ranks.size());
  part.global_ranks.assign(options->global_ranks_in_group.begin(),
                           options->global_ranks_in_group.end());
  return c10::make_intrusive<ProcessGroupHccl>(store, std::move(part), options->timeout);
}

bool ProcessGroupHccl::supportsTensorAlloc(c10::DeviceIndex) { return true; }

at::Tensor ProcessGroupHccl::allocateTensor(long size, at::TensorOptions options) {
  const std::int64_t elements = size;
  return options.device().is_hpu() ? at::empty(elements, options) : empty(elements, options);
}

int ProcessGroupHccl::checked_root(std::int64_t root, const char* call) const {
  TORCH_CHECK_VALUE(root >= 0 && root < getSize(), "hccl_torch: ", call, " with root ", root,
                    ", but ", communicator_->describe(), " has the ranks 0 to ", getSize() - 1);
  return static_cast<int>(root);
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::broadcast(Tensors& tensors,
                                                      const c10d::BroadcastOptions& options) {
  static_cast<void>(single(tensors, "broadcast"));
  Issue issue(queue_, c10d::OpType::BROADCAST, "broadcast");
  const int root = checked_root(options.rootRank, "broadcast");
  const at::Tensor buffer =
      root == getRank() ? issue.input(tensors[0]) : issue.output(tensors[0], false);
  if (root == getRank()) issue.promise(tensors, false);
  issue.call("hcclBroadcast", [=, this] {
    return hcclBroadcast(buffer.data_ptr(), buffer.data_ptr(), buffer.nbytes(), hcclUint8, root,
                         comm(), stream());
  });
  return issue.end();
}

void ProcessGroupHccl::all_reduce(Issue& issue, at::Tensor& tensor,
                                  const c10d::ReduceOp& operation) {
  const Reduction reduction = reduction_of(operation, tensor.scalar_type(), "all_reduce");
  const bool in_place = !reduction.factor.defined();
  const at::Tensor from = in_place ? at::Tensor() : operand(issue, tensor, reduction);
  const at::Tensor to = issue.output(tensor, in_place);
  issue.call("hcclAllReduce", [=, this] {
    return hcclAllReduce(in_place ? to.data_ptr() : from.data_ptr(), to.data_ptr(),
                         reduction.count(to), reduction.type, reduction.operation, comm(),
                         stream());
  });
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::allreduce(Tensors& tensors,
                                                      const c10d::AllreduceOptions& options) {
  if (single(tensors, "all_reduce").is_sparse()) return all_reduce_sparse(tensors, options);
  Issue issue(queue_, c10d::OpType::ALLREDUCE, "all_reduce");
  all_reduce(issue, tensors[0], options.reduceOp);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::all_reduce_sparse(
    Tensors& tensors, const c10d::AllreduceOptions& options) {
  TORCH_CHECK_TYPE(options.reduceOp == c10d::ReduceOp::SUM,
                   "hccl_torch: all_reduce of sparse tensors supports only ReduceOp.SUM");
  sum_sparse(*this, tensors[0]);
  Issue issue(queue_, c10d::OpType::ALLREDUCE, "all_reduce");
  issue.operation().outputs = tensors;
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  Issue issue(queue_, c10d::OpType::ALLREDUCE_COALESCED, "all_reduce_coalesced");
  for (at::Tensor& tensor : tensors) all_reduce(issue, tensor, options.reduceOp);
  return issue.end();
}

// Changes only the root's tensor.
ProcessGroupHccl::WorkPtr ProcessGroupHccl::reduce(Tensors& tensors,
                                                   const c10d::ReduceOptions& options) {
  const at::Tensor& tensor = single(tensors, "reduce");
  const Reduction reduction = reduction_of(options.reduceOp, tensor.scalar_type(), "reduce");
  Issue issue(queue_, c10d::OpType::REDUCE, "reduce");
  const int root = checked_root(options.rootRank, "reduce");
  const at::Tensor from = operand(issue, tensor, reduction);
  const at::Tensor to = root == getRank() ? issue.output(tensors[0], false) : from;
  if (root != getRank()) issue.promise(tensors, false);
  issue.call("hcclReduce", [=, this] {
    return hcclReduce(from.data_ptr(), to.data_ptr(), reduction.count(from), reduction.type,
                      reduction.operation, root, comm(), stream());
  });
  return issue.end();
}

void ProcessGroupHccl::all_gather(Issue& issue, at::Tensor& output, const at::Tensor& input) {
  TORCH_CHECK_VALUE(output.nbytes() == input.nbytes() * static_cast<std::size_t>(getSize()),
                    "hccl_torch: all_gather_into_tensor gathers ", input.nbytes(),
                    " bytes from each of ", getSize(), " ranks, but the output has ",
                    output.nbytes(), " bytes");
  const at::Tensor from = issue.input(input);
  const at::Tensor to = issue.output(output, false);
  issue.call("hcclAllGather", [=, this] {
    return hcclAllGather(from.data_ptr(), to.data_ptr(), from.nbytes(), hcclUint8, comm(),
                         stream());
  });
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                            const c10d::AllgatherOptions&) {
  Issue issue(queue_, c10d::OpType::_ALLGATHER_BASE, "all_gather_into_tensor");
  all_gather(issue, output, input);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions&) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(),
                    "hccl_torch: all_gather_into_tensor_coalesced needs one output for each input");
  Issue issue(queue_, c10d::OpType::COALESCED, "all_gather_into_tensor_coalesced");
  for (std::size_t i = 0; i < inputs.size(); ++i) all_gather(issue, outputs[i], inputs[i]);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::allgather(TensorLists& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions&) {
  const at::Tensor& input = single(inputs, "all_gather");
  TORCH_CHECK_VALUE(outputs.size() == 1, "hccl_torch: all_gather takes one list of outputs, not ",
                    outputs.size());
  Issue issue(queue_, c10d::OpType::ALLGATHER, "all_gather");
  all_gather_list(issue, outputs[0], input);
  return issue.end();
}

// Gathers the i-th input of rank r into output_lists[r][i].
ProcessGroupHccl::WorkPtr ProcessGroupHccl::allgather_coalesced(TensorLists& output_lists,
                                                                Tensors& inputs,
                                                                const c10d::AllgatherOptions&) {
  Issue issue(queue_, c10d::OpType::ALLGATHER_COALESCED, "all_gather_coalesced");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors outputs;
    for (const Tensors& of_rank : output_lists) {
      TORCH_CHECK_VALUE(
          of_rank.size() == inputs.size(), "hccl_torch: all_gather_coalesced of ", inputs.size(),
          " tensors needs the same number of outputs for each rank, not ", of_rank.size());
      outputs.push_back(of_rank[i]);
    }
    all_gather_list(issue, outputs, inputs[i]);
  }
  return issue.end();
}

void ProcessGroupHccl::all_gather_list(Issue& issue, Tensors& outputs, const at::Tensor& input) {
  TORCH_CHECK_VALUE(outputs.size() == static_cast<std::size_t>(getSize()),
                    "hccl_torch: all_gather needs an output for each of ", getSize(),
                    " ranks, not ", outputs.size());
  const at::Tensor from = issue.input(input);
  const bool alike = std::all_of(outputs.begin(), outputs.end(), [&](const at::Tensor& one) {
    return one.nbytes() == from.nbytes();
  });
  if (!alike) return broadcast_each(issue, outputs, from);
  const at::Tensor flat = issue.scratch(getSize() * static_cast<std::int64_t>(from.nbytes()));
  issue.promise(outputs, true);
  issue.call("hcclAllGather", [=, this] {
    return hcclAllGather(from.data_ptr(), flat.data_ptr(), from.nbytes(), hcclUint8, comm(),
                         stream());
  });
  issue.then([flat, bytes = static_cast<std::int64_t>(from.nbytes()), to = outputs]() mutable {
    for (std::size_t rank = 0; rank < to.size(); ++rank) {
      if (to[rank].numel() == 0) continue;
      const at::Tensor part = flat.narrow(0, static_cast<std::int64_t>(rank) * bytes, bytes);
      deliver_into(to[rank], part.view(to[rank].scalar_type()).view(to[rank].sizes()),
                   "all_gather");
    }
  });
}

// Gathers tensors of different sizes with one broadcast from each rank.
void ProcessGroupHccl::broadcast_each(Issue& issue, Tensors& outputs, const at::Tensor& from) {
  Tensors received;
  for (at::Tensor& output : outputs) received.push_back(issue.output(output, false));
  std::optional<CallGroup> calls;
  if (!issue.is_coalesced()) calls.emplace();
  for (int rank = 0; rank < getSize(); ++rank) {
    const at::Tensor& to = received[static_cast<std::size_t>(rank)];
    const void* const source = rank == getRank() ? from.data_ptr() : to.data_ptr();
    issue.call("hcclBroadcast", [=, this] {
      return hcclBroadcast(source, to.data_ptr(), to.nbytes(), hcclUint8, rank, comm(), stream());
    });
  }
  if (calls) calls->end();
}

void ProcessGroupHccl::reduce_scatter(Issue& issue, at::Tensor& output, const at::Tensor& input,
                                      const c10d::ReduceOp& operation) {
  TORCH_CHECK_VALUE(input.numel() == output.numel() * getSize(),
                    "hccl_torch: reduce_scatter_tensor needs ", output.numel(),
                    " input elements (the size of the output) for each of ", getSize(),
                    " ranks, but the input has ", input.numel(), " elements");
  const Reduction reduction = reduction_of(operation, input.scalar_type(), "reduce_scatter");
  const at::Tensor from = operand(issue, input, reduction);
  const at::Tensor to = issue.output(output, false);
  issue.call("hcclReduceScatter", [=, this] {
    return hcclReduceScatter(from.data_ptr(), to.data_ptr(), reduction.count(to), reduction.type,
                             reduction.operation, comm(), stream());
  });
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  Issue issue(queue_, c10d::OpType::_REDUCE_SCATTER_BASE, "reduce_scatter_tensor");
  reduce_scatter(issue, output, input, options.reduceOp);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(),
                    "hccl_torch: reduce_scatter_tensor_coalesced needs one output for each input");
  Issue issue(queue_, c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED,
              "reduce_scatter_tensor_coalesced");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    reduce_scatter(issue, outputs[i], inputs[i], options.reduceOp);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::reduce_scatter(
    Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) {
  static_cast<void>(single(outputs, "reduce_scatter"));
  TORCH_CHECK_VALUE(inputs.size() == 1 && inputs[0].size() == static_cast<std::size_t>(getSize()),
                    "hccl_torch: reduce_scatter needs one input tensor for each of ", getSize(),
                    " ranks");
  for (const at::Tensor& input : inputs[0]) {
    TORCH_CHECK_VALUE(input.numel() == outputs[0].numel(),
                      "hccl_torch: reduce_scatter needs inputs that have the size of the output");
  }
  Issue issue(queue_, c10d::OpType::REDUCE_SCATTER, "reduce_scatter");
  Tensors flat;
  for (const at::Tensor& input : inputs[0]) {
    issue.await_writers(input);
    flat.push_back(input.reshape({-1}));
  }
  reduce_scatter(issue, outputs[0], at::cat(flat), options.reduceOp);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                          std::vector<std::int64_t>& output_sizes,
                                                          std::vector<std::int64_t>& input_sizes,
                                                          const c10d::AllToAllOptions&) {
  Issue issue(queue_, c10d::OpType::ALLTOALL_BASE, "all_to_all_single");
  if (output_sizes.empty() && input_sizes.empty()) {
    TORCH_CHECK_VALUE(input.nbytes() == output.nbytes() && input.numel() % getSize() == 0,
                      "hccl_torch: all_to_all_single without split sizes needs an input and an "
                      "output of equal size, divisible by the number of ranks, which is ",
                      getSize());
    const at::Tensor from = issue.input(input);
    const at::Tensor to = issue.output(output, false);
    issue.call("hcclAlltoAll", [=, this] {
      return hcclAlltoAll(from.data_ptr(), to.data_ptr(), from.nbytes(), hcclUint8, comm(),
                          stream());
    });
    return issue.end();
  }
  const auto parts = [&](const at::Tensor& whole, const std::vector<std::int64_t>& sizes) {
    const std::vector<std::int64_t> equal(static_cast<std::size_t>(getSize()),
                                          whole.size(0) / getSize());
    return whole.split_with_sizes(sizes.empty() ? equal : sizes);
  };
  Tensors to = parts(output, output_sizes);
  messages_->exchange(issue, to, parts(input, input_sizes));
  issue.operation().outputs = {output};
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::alltoall(Tensors& outputs, Tensors& inputs,
                                                     const c10d::AllToAllOptions&) {
  Issue issue(queue_, c10d::OpType::ALLTOALL, "all_to_all");
  messages_->exchange(issue, outputs, inputs);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::gather(TensorLists& outputs, Tensors& inputs,
                                                   const c10d::GatherOptions& options) {
  const at::Tensor& input = single(inputs, "gather");
  Issue issue(queue_, c10d::OpType::GATHER, "gather");
  Tensors sent(static_cast<std::size_t>(getSize()));
  sent[static_cast<std::size_t>(checked_root(options.rootRank, "gather"))] = input;
  Tensors none;
  messages_->exchange(issue, options.rootRank == getRank() ? outputs.at(0) : none, sent);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::scatter(Tensors& outputs, TensorLists& inputs,
                                                    const c10d::ScatterOptions& options) {
  Issue issue(queue_, c10d::OpType::SCATTER, "scatter");
  Tensors received(static_cast<std::size_t>(getSize()));
  received[static_cast<std::size_t>(checked_root(options.rootRank, "scatter"))] =
      single(outputs, "scatter");
  messages_->exchange(issue, received, options.rootRank == getRank() ? inputs.at(0) : Tensors{});
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::send(Tensors& tensors, int peer, int tag) {
  return messages_->send(single(tensors, "send"), peer, tag);
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::recv(Tensors& tensors, int peer, int tag) {
  static_cast<void>(single(tensors, "recv"));
  return messages_->receive(tensors[0], peer, tag);
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::recvAnysource(Tensors& tensors, int tag) {
  static_cast<void>(single(tensors, "recv"));
  return messages_->receive_from_any(tensors[0], tag);
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::barrier(const c10d::BarrierOptions& options) {
  Issue issue(queue_, c10d::OpType::BARRIER, "barrier");
  if (options.timeout != c10d::kUnsetTimeout) issue.operation().timeout = options.timeout;
  issue.call("hcclBarrier", [=, this] { return hcclBarrier(comm(), stream()); });
  return issue.end();
}

}  // namespace hccl_torch
