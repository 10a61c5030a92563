// SPDX-License-Identifier: Apache-2.0
// Checks the arguments of a call on a communicator and queues the call.
#pragma once

#include "api/guard.h"
#include "api/handles.h"
#include "base/config.h"
#include "comm/blocking.h"
#include "comm/group.h"
#include "device/host_memory.h"
#include "reduce/reduce.h"

namespace hccl::api {

inline void check_type(hcclDataType_t type) {
  if (reduce::element_size(type) == 0) {
    throw Error(hcclInvalidArgument,
                "the datatype is not an hcclDataType_t; pass hcclFloat32 or another of its values");
  }
  if (!reduce::data_type(type).on_gaudi && strict_mode()) {
    throw Error(hcclInvalidArgument,
                text("HCCL_STRICT=1: Gaudi's library does not support ", reduce::type_name(type),
                     "; pass float, bfloat16, half, int32 or uint32"));
  }
}

inline void check_reduction(hcclRedOp_t operation, hcclDataType_t type) {
  const bool is_bitwise = reduce::is_bitwise(operation);
  if (!is_bitwise && (operation < hcclSum || operation > hcclAvg)) {
    throw Error(hcclInvalidArgument,
                text("reduceOp ", static_cast<int>(operation),
                     " is not a reduction; pass hcclSum, hcclProd, hcclMin, hcclMax or hcclAvg"));
  }
  if ((is_bitwise || operation == hcclProd || operation == hcclAvg) && strict_mode()) {
    throw Error(hcclInvalidArgument,
                text("HCCL_STRICT=1: Gaudi's library does not support ",
                     reduce::operation_name(operation), "; pass sum, min or max"));
  }
  if (!reduce::supports(type, operation)) {
    throw Error(
        hcclInvalidArgument,
        text("reduceOp ", reduce::operation_name(operation), " does not apply to ",
             reduce::type_name(type), "; pass an integer type, or reinterpret the data as one"));
  }
}

// If `address` is in a host view, returns the device address behind it; otherwise returns
// `address`.
[[nodiscard]] inline std::uint64_t behind_view(const comm::Communicator& communicator,
                                               std::uint64_t address) {
  return communicator.device().arena().behind_view(address);
}

// Throws Error if a buffer is not valid. It may be in host memory unless HCCL_STRICT=1 is set.
inline void check_memory(const comm::Communicator& communicator, std::uint64_t address,
                         std::uint64_t bytes, const char* name) {
  if (device::is_device_address(address)) {
    const device::Device& own = communicator.device();
    if (device::device_of(address) != own.id()) {
      throw Error(hcclInvalidArgument,
                  text(name, " 0x", std::hex, address, std::dec, " is an address of device ",
                       device::device_of(address), ", but the communicator belongs to device ",
                       own.id(), "; pass memory of device ", own.id()));
    }
    static_cast<void>(communicator.device().arena().resolve(address, bytes, name));
    return;
  }
  if (strict_mode()) {
    throw Error(hcclInvalidArgument,
                text("HCCL_STRICT=1: ", name, " 0x", std::hex, address,
                     " is not in device memory; pass an address from synDeviceMalloc"));
  }
  device::check_host_range(address, bytes, name);
}

// Throws Error(hcclInvalidArgument) unless `rank` is one of `size` ranks. `name` is the parameter's
// name.
inline void check_rank(int rank, int size, const char* name) {
  if (rank < 0 || rank >= size)
    throw Error(hcclInvalidArgument, text(name, " is ", rank, " in a communicator of size ", size,
                                          "; pass 0 to ", size - 1));
}

// Blocks until all work on the stream has run. Releases the communicator's pin before it waits,
// because an abort waits until all pins of the communicator are released. Throws Error if work has
// failed.
inline void wait_for(CommunicatorPin communicator, const StreamPin& stream) {
  const std::shared_ptr<comm::Communicator> kept = communicator.shared();
  { const CommunicatorPin released = std::move(communicator); }
  comm::wait_for_streams({&stream.shared(), 1}, {&kept, 1});
}

// Implements a function of the API. Finds the stream and the communicator, and queues the call that
// make(communicator) returns, or keeps it in the open group. `make` must check the arguments of the
// call. Blocks while the stream's queue is full and, with HCCL_BLOCKING, until the call has run.
template <class Make>
hcclResult_t submit(Callee callee, hcclDataType_t type, hcclComm_t comm, const void* stream,
                    Make make) {
  return queueing_guard(callee, [&] {
    check_type(type);
    if (comm::Group* const group = comm::Group::current(); group != nullptr) {
      const comm::Communicator* const known = group->known(to_number(comm), to_number(stream));
      if (known != nullptr) return group->keep_known(make(*known));
      comm::StreamHold on = hold_stream(stream);
      comm::CommunicatorHold communicator = hold_communicator(comm);
      const auto call = make(*communicator);
      return group->keep(std::move(communicator), std::move(on), call);
    }
    const StreamPin on = find_stream(stream);
    on->make_room();  // may block, and hcclCommAbort() waits for pins of the communicator
    CommunicatorPin communicator = find_communicator(comm);
    communicator->enqueue(*on, make(*communicator));
    if (blocking_mode()) [[unlikely]]
      wait_for(std::move(communicator), on);
  });
}

}  // namespace hccl::api
