// SPDX-License-Identifier: Apache-2.0
#include "process_group.h"

#include "call.h"
#include "element_type.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

namespace hccl_torch {

namespace {

const at::Tensor& single(const std::vector<at::Tensor>& tensors, const char* call) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "hccl_torch: ", call, " takes one tensor, not ",
                    tensors.size());
  return tensors[0];
}

std::uint64_t bytes_of(const at::Tensor& tensor) { return tensor.nbytes(); }

}  // namespace

ProcessGroupHccl::ProcessGroupHccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                   std::chrono::milliseconds timeout, std::string group,
                                   std::vector<std::int64_t> global_ranks)
    : Backend(rank, size),
      options_(c10::make_intrusive<Options>("hccl", timeout)),
      communicator_(std::make_shared<Communicator>(*store, rank, size, group)),
      queue_(rank, group, communicator_) {
  options_->group_name = std::move(group);
  options_->global_ranks_in_group.assign(global_ranks.begin(), global_ranks.end());
}

ProcessGroupHccl::~ProcessGroupHccl() = default;

void ProcessGroupHccl::startCoalescing() { queue_.start_coalescing(); }

ProcessGroupHccl::WorkPtr ProcessGroupHccl::endCoalescing() { return queue_.end_coalescing(); }

std::uint64_t ProcessGroupHccl::getSequenceNumberForGroup() { return queue_.sequence(); }

void ProcessGroupHccl::abort() { communicator_->abort(); }

void ProcessGroupHccl::shutdown() { communicator_->finalize(); }

c10d::ErrorType ProcessGroupHccl::getError() {
  return communicator_->fault().empty() ? c10d::ErrorType::SUCCESS : c10d::ErrorType::COMM_ERROR;
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::broadcast(Tensors& tensors,
                                                      const c10d::BroadcastOptions& options) {
  static_cast<void>(single(tensors, "broadcast"));
  Issue issue(queue_, c10d::OpType::BROADCAST, "broadcast");
  const at::Tensor buffer = issue.output(tensors[0], true);
  check(hcclBroadcast(buffer.data_ptr(), buffer.data_ptr(), bytes_of(buffer), hcclUint8,
                      static_cast<int>(options.rootRank), comm(), stream()),
        "hcclBroadcast");
  return issue.end();
}

void ProcessGroupHccl::all_reduce(Issue& issue, at::Tensor& tensor,
                                  const c10d::ReduceOp& operation) {
  const Reduction reduction = reduction_of(operation, tensor.scalar_type(), "allreduce");
  const at::Tensor buffer = issue.output(tensor, true);
  check(hcclAllReduce(buffer.data_ptr(), buffer.data_ptr(),
                      static_cast<std::uint64_t>(buffer.numel() * reduction.parts), reduction.type,
                      reduction.operation, comm(), stream()),
        "hcclAllReduce");
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::allreduce(Tensors& tensors,
                                                      const c10d::AllreduceOptions& options) {
  static_cast<void>(single(tensors, "allreduce"));
  Issue issue(queue_, c10d::OpType::ALLREDUCE, "allreduce");
  all_reduce(issue, tensors[0], options.reduceOp);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  Issue issue(queue_, c10d::OpType::ALLREDUCE_COALESCED, "allreduce_coalesced");
  for (at::Tensor& tensor : tensors) all_reduce(issue, tensor, options.reduceOp);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::reduce(Tensors& tensors,
                                                   const c10d::ReduceOptions& options) {
  static_cast<void>(single(tensors, "reduce"));
  const Reduction reduction = reduction_of(options.reduceOp, tensors[0].scalar_type(), "reduce");
  Issue issue(queue_, c10d::OpType::REDUCE, "reduce");
  const at::Tensor buffer = issue.output(tensors[0], true);
  check(hcclReduce(buffer.data_ptr(), buffer.data_ptr(),
                   static_cast<std::uint64_t>(buffer.numel() * reduction.parts), reduction.type,
                   reduction.operation, static_cast<int>(options.rootRank), comm(), stream()),
        "hcclReduce");
  return issue.end();
}

void ProcessGroupHccl::all_gather(Issue& issue, at::Tensor& output, const at::Tensor& input) {
  TORCH_CHECK_VALUE(output.nbytes() == input.nbytes() * static_cast<std::size_t>(getSize()),
                    "hccl_torch: all_gather_into_tensor of ", input.nbytes(), " bytes by ",
                    getSize(), " ranks needs an output of as many times that, not of ",
                    output.nbytes(), " bytes");
  const at::Tensor from = issue.input(input);
  const at::Tensor to = issue.output(output, false);
  check(hcclAllGather(from.data_ptr(), to.data_ptr(), bytes_of(from), hcclUint8, comm(), stream()),
        "hcclAllGather");
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
                    "hccl_torch: as many outputs as inputs are needed");
  Issue issue(queue_, c10d::OpType::COALESCED, "allgather_into_tensor_coalesced");
  for (std::size_t i = 0; i < inputs.size(); ++i) all_gather(issue, outputs[i], inputs[i]);
  return issue.end();
}

// Each rank's tensor is broadcast, for their sizes may differ.
ProcessGroupHccl::WorkPtr ProcessGroupHccl::allgather(TensorLists& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions&) {
  const at::Tensor& input = single(inputs, "all_gather");
  TORCH_CHECK_VALUE(outputs.size() == 1 && outputs[0].size() == static_cast<std::size_t>(getSize()),
                    "hccl_torch: all_gather needs one output tensor for each of ", getSize(),
                    " ranks");
  Issue issue(queue_, c10d::OpType::ALLGATHER, "all_gather");
  const at::Tensor from = issue.input(input);
  const bool alike = std::all_of(outputs[0].begin(), outputs[0].end(), [&](const at::Tensor& one) {
    return one.nbytes() == from.nbytes();
  });
  if (alike) {
    at::Tensor flat = at::empty({getSize(), static_cast<std::int64_t>(from.nbytes())}, at::kByte);
    issue.operation().buffers.push_back(flat);
    issue.operation().outputs = outputs[0];
    check(hcclAllGather(from.data_ptr(), flat.data_ptr(), bytes_of(from), hcclUint8, comm(),
                        stream()),
          "hcclAllGather");
    issue.then([flat, to = outputs[0]]() mutable {
      for (std::size_t rank = 0; rank < to.size(); ++rank) {
        if (to[rank].numel() == 0) continue;
        copy_into(to[rank], flat[static_cast<std::int64_t>(rank)]
                                .view(to[rank].scalar_type())
                                .view(to[rank].sizes()));
      }
    });
    return issue.end();
  }
  for (int rank = 0; rank < getSize(); ++rank) {
    at::Tensor& output = outputs[0][static_cast<std::size_t>(rank)];
    const at::Tensor to = issue.output(output, false);
    const void* source = rank == getRank() ? from.data_ptr() : to.data_ptr();
    check(hcclBroadcast(source, to.data_ptr(), bytes_of(to), hcclUint8, rank, comm(), stream()),
          "hcclBroadcast");
  }
  return issue.end();
}

void ProcessGroupHccl::reduce_scatter(Issue& issue, at::Tensor& output, const at::Tensor& input,
                                      const c10d::ReduceOp& operation) {
  TORCH_CHECK_VALUE(input.numel() == output.numel() * getSize(),
                    "hccl_torch: reduce_scatter_tensor to ", output.numel(), " elements on ",
                    getSize(), " ranks needs an input of as many times that, not of ",
                    input.numel());
  const Reduction reduction = reduction_of(operation, input.scalar_type(), "reduce_scatter");
  const at::Tensor from = issue.input(input);
  const at::Tensor to = issue.output(output, false);
  check(hcclReduceScatter(from.data_ptr(), to.data_ptr(),
                          static_cast<std::uint64_t>(to.numel() * reduction.parts), reduction.type,
                          reduction.operation, comm(), stream()),
        "hcclReduceScatter");
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
                    "hccl_torch: as many outputs as inputs are needed");
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
                      "hccl_torch: reduce_scatter needs inputs of the size of the output");
  }
  Issue issue(queue_, c10d::OpType::REDUCE_SCATTER, "reduce_scatter");
  Tensors flat;
  for (const at::Tensor& input : inputs[0]) flat.push_back(input.reshape({-1}));
  reduce_scatter(issue, outputs[0], at::cat(flat), options.reduceOp);
  return issue.end();
}

// The i-th input goes to rank i, whose message fills the i-th output. Undefined ones take part in
// nothing. All tensors are looked at before the group of calls begins: what the library refuses
// then, hcclGroupEnd() reports.
void ProcessGroupHccl::exchange(Issue& issue, Tensors& outputs, const Tensors& inputs) {
  Tensors sent(inputs.size());
  Tensors received(outputs.size());
  for (std::size_t peer = 0; peer < inputs.size(); ++peer) {
    if (inputs[peer].defined()) sent[peer] = issue.input(inputs[peer]);
  }
  for (std::size_t peer = 0; peer < outputs.size(); ++peer) {
    if (outputs[peer].defined()) received[peer] = issue.output(outputs[peer], false);
  }
  CallGroup calls;
  for (std::size_t peer = 0; peer < static_cast<std::size_t>(getSize()); ++peer) {
    const int rank = static_cast<int>(peer);
    if (peer < sent.size() && sent[peer].defined())
      check(
          hcclSend(sent[peer].data_ptr(), bytes_of(sent[peer]), hcclUint8, rank, comm(), stream()),
          "hcclSend");
    if (peer < received.size() && received[peer].defined())
      check(hcclRecv(received[peer].data_ptr(), bytes_of(received[peer]), hcclUint8, rank, comm(),
                     stream()),
            "hcclRecv");
  }
  calls.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                          std::vector<std::int64_t>& output_sizes,
                                                          std::vector<std::int64_t>& input_sizes,
                                                          const c10d::AllToAllOptions&) {
  Issue issue(queue_, c10d::OpType::ALLTOALL_BASE, "all_to_all_single");
  if (output_sizes.empty() && input_sizes.empty()) {
    TORCH_CHECK_VALUE(input.nbytes() == output.nbytes() && input.numel() % getSize() == 0,
                      "hccl_torch: all_to_all_single without sizes needs an input and an output of "
                      "equal size, divisible by ",
                      getSize(), " ranks");
    const at::Tensor from = issue.input(input);
    const at::Tensor to = issue.output(output, false);
    check(hcclAlltoAll(from.data_ptr(), to.data_ptr(), bytes_of(from), hcclUint8, comm(), stream()),
          "hcclAlltoAll");
    return issue.end();
  }
  const auto parts = [&](const at::Tensor& whole, const std::vector<std::int64_t>& sizes) {
    const std::vector<std::int64_t> equal(static_cast<std::size_t>(getSize()),
                                          whole.size(0) / getSize());
    return whole.split_with_sizes(sizes.empty() ? equal : sizes);
  };
  Tensors to = parts(output, output_sizes);
  exchange(issue, to, parts(input, input_sizes));
  issue.operation().outputs = {output};
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::alltoall(Tensors& outputs, Tensors& inputs,
                                                     const c10d::AllToAllOptions&) {
  Issue issue(queue_, c10d::OpType::ALLTOALL, "all_to_all");
  exchange(issue, outputs, inputs);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::gather(TensorLists& outputs, Tensors& inputs,
                                                   const c10d::GatherOptions& options) {
  const at::Tensor& input = single(inputs, "gather");
  Issue issue(queue_, c10d::OpType::GATHER, "gather");
  Tensors sent(static_cast<std::size_t>(getSize()));
  sent[static_cast<std::size_t>(options.rootRank)] = input;
  Tensors none;
  exchange(issue, options.rootRank == getRank() ? outputs.at(0) : none, sent);
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::scatter(Tensors& outputs, TensorLists& inputs,
                                                    const c10d::ScatterOptions& options) {
  Issue issue(queue_, c10d::OpType::SCATTER, "scatter");
  Tensors received(static_cast<std::size_t>(getSize()));
  received[static_cast<std::size_t>(options.rootRank)] = single(outputs, "scatter");
  exchange(issue, received, options.rootRank == getRank() ? inputs.at(0) : Tensors{});
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::send(Tensors& tensors, int peer, int) {
  const at::Tensor& tensor = single(tensors, "send");
  Issue issue(queue_, c10d::OpType::SEND, "send");
  const at::Tensor from = issue.input(tensor);
  check(hcclSend(from.data_ptr(), bytes_of(from), hcclUint8, peer, comm(), stream()), "hcclSend");
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::recv(Tensors& tensors, int peer, int) {
  static_cast<void>(single(tensors, "recv"));
  Issue issue(queue_, c10d::OpType::RECV, "recv");
  const at::Tensor to = issue.output(tensors[0], false);
  check(hcclRecv(to.data_ptr(), bytes_of(to), hcclUint8, peer, comm(), stream()), "hcclRecv");
  return issue.end();
}

ProcessGroupHccl::WorkPtr ProcessGroupHccl::barrier(const c10d::BarrierOptions&) {
  Issue issue(queue_, c10d::OpType::BARRIER, "barrier");
  check(hcclBarrier(comm(), stream()), "hcclBarrier");
  return issue.end();
}

}  // namespace hccl_torch
