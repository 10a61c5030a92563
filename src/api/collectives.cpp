// SPDX-License-Identifier: Apache-2.0
// The collective calls: each validates its arguments, queues the work and returns.
#include "api/queueing.h"
#include "call/collective_call.h"
#include "reduce/reduce.h"

#include <hccl.h>

#include <algorithm>
#include <limits>

using namespace hccl;
using namespace hccl::api;

namespace {

void check_divisible(std::uint64_t count, int size) {
  if (count % static_cast<std::uint64_t>(size) == 0) return;
  throw Error(hcclInvalidArgument,
              text("count ", count, " is not a multiple of the number of ranks, ", size,
                   "; pass the number of elements in the whole buffer"));
}

// Throws Error(hcclInvalidArgument) if `call.count` elements on each of `size` ranks would exceed
// 2^63 - 1 bytes.
void check_count(const CollectiveCall& call, int size) {
  const std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t element =
      reduce::element_size(call.data_type()) * static_cast<std::uint64_t>(size);
  if (element == 0 || call.count > largest / element)
    throw Error(hcclInvalidArgument,
                text("count ", call.count,
                     " is too large: the buffers of all ranks would exceed 2^63 - 1 bytes; look "
                     "for a negative number converted to unsigned"));
}

void check_buffers(const comm::Communicator& communicator, const CollectiveCall& call) {
  const std::uint64_t send_bytes = hccl::send_bytes(call, communicator.size());
  const std::uint64_t recv_bytes = hccl::recv_bytes(call, communicator.size());
  if (send_bytes == 0) return;  // no memory is accessed
  check_memory(communicator, call.send, send_bytes, "sendbuff");
  if (!receives(call, communicator.rank())) return;
  check_memory(communicator, call.recv, recv_bytes, "recvbuff");
  const std::uint64_t begin = std::max(call.send, call.recv);
  const std::uint64_t end = std::min(call.send + send_bytes, call.recv + recv_bytes);
  // If buffers that are not in place overlap, the output would overwrite input that has not been
  // read yet.
  if (begin >= end || is_in_place(call, communicator.rank(), communicator.size())) return;
  throw Error(hcclInvalidArgument,
              text("sendbuff and recvbuff overlap by 0x", std::hex, end - begin,
                   " bytes; use separate buffers or the in-place form"));
}

// Submits a collective. Replaces addresses in host views with device addresses. Then
// check(communicator, call) checks the arguments that only this collective has.
template <class Check>
hcclResult_t submit_collective(Callee callee, const CollectiveCall& call, hcclComm_t comm,
                               void* stream, Check check) {
  return submit(callee, call.data_type(), comm, stream,
                [&](const comm::Communicator& communicator) {
                  CollectiveCall seen = call;
                  seen.send = behind_view(communicator, call.send);
                  seen.recv = behind_view(communicator, call.recv);
                  check(communicator, seen);
                  check_count(seen, communicator.size());
                  check_buffers(communicator, seen);
                  return seen;
                });
}

CollectiveCall make_call(Collective collective, const void* send, void* recv, std::uint64_t count,
                         hcclDataType_t type, hcclRedOp_t operation = hcclOpNone, int root = -1) {
  CollectiveCall call;
  call.collective = collective;
  // Truncation to 8 bits must not make an invalid value valid.
  call.type = static_cast<unsigned>(type) < hcclNumTypes ? static_cast<std::uint8_t>(type) : 0xff;
  call.operation =
      static_cast<unsigned>(operation) <= 0xff ? static_cast<std::uint8_t>(operation) : 0xff;
  call.root = root;
  call.count = count;
  call.send = to_number(send);
  call.recv = to_number(recv);
  return call;
}

}  // namespace

hcclResult_t hcclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           hcclDataType_t datatype, hcclRedOp_t reduceOp, hcclComm_t comm,
                           void* stream_handle) {
  return submit_collective(
      __func__, make_call(Collective::all_reduce, sendbuff, recvbuff, count, datatype, reduceOp),
      comm, stream_handle, [&](const comm::Communicator&, const CollectiveCall&) {
        check_reduction(reduceOp, datatype);
      });
}

hcclResult_t hcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               hcclDataType_t datatype, hcclRedOp_t reduceOp, hcclComm_t comm,
                               void* stream_handle) {
  return submit_collective(
      __func__,
      make_call(Collective::reduce_scatter, sendbuff, recvbuff, recvcount, datatype, reduceOp),
      comm, stream_handle, [&](const comm::Communicator&, const CollectiveCall&) {
        check_reduction(reduceOp, datatype);
      });
}

hcclResult_t hcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           hcclDataType_t datatype, hcclComm_t comm, void* stream_handle) {
  return submit_collective(
      __func__, make_call(Collective::all_gather, sendbuff, recvbuff, sendcount, datatype), comm,
      stream_handle, [](const comm::Communicator&, const CollectiveCall&) {});
}

hcclResult_t hcclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           hcclDataType_t datatype, int root, hcclComm_t comm,
                           void* stream_handle) {
  return submit_collective(
      __func__,
      make_call(Collective::broadcast, sendbuff, recvbuff, count, datatype, hcclOpNone, root), comm,
      stream_handle, [&](const comm::Communicator& communicator, const CollectiveCall&) {
        check_rank(root, communicator.size(), "root");
      });
}

// NOLINTNEXTLINE(readability-function-size): the parameters are the API's
hcclResult_t hcclReduce(const void* sendbuff, void* recvbuff, size_t count, hcclDataType_t datatype,
                        hcclRedOp_t reduceOp, int root, hcclComm_t comm, void* stream_handle) {
  return submit_collective(
      __func__, make_call(Collective::reduce, sendbuff, recvbuff, count, datatype, reduceOp, root),
      comm, stream_handle, [&](const comm::Communicator& communicator, const CollectiveCall&) {
        check_reduction(reduceOp, datatype);
        check_rank(root, communicator.size(), "root");
      });
}

hcclResult_t hcclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          hcclDataType_t datatype, hcclComm_t comm, void* stream_handle) {
  return submit_collective(
      __func__, make_call(Collective::all_to_all, sendbuff, recvbuff, count, datatype), comm,
      stream_handle, [&](const comm::Communicator& communicator, const CollectiveCall& call) {
        check_divisible(count, communicator.size());
        if (call.send != call.recv || count == 0 || !strict_mode()) return;
        throw Error(hcclInvalidArgument,
                    "HCCL_STRICT=1: Gaudi's library has no in-place all-to-all; pass two buffers");
      });
}

hcclResult_t hcclBarrier(hcclComm_t comm, void* stream_handle) {
  if (strict_mode()) {
    return guard(__func__, [] {
      throw Error(hcclUnsupported,
                  "HCCL_STRICT=1: Gaudi's library has no barrier; use a small all-reduce");
    });
  }
  return submit_collective(__func__, make_call(Collective::barrier, nullptr, nullptr, 0, hcclInt8),
                           comm, stream_handle,
                           [](const comm::Communicator&, const CollectiveCall&) {});
}
