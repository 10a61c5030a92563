// SPDX-License-Identifier: Apache-2.0
// What the calls that queue work on a communicator share: checks of arguments, and the choice
// between a stream and the thread's open group.
#pragma once

#include "api/handles.h"
#include "base/config.h"
#include "comm/group.h"
#include "reduce/reduce.h"

#include <type_traits>

namespace hccl::api {

inline void check_type(hcclDataType_t type) {
  if (reduce::element_size(type) == 0) {
    throw Error(hcclInvalidArgument,
                "the datatype is no hcclDataType_t; pass hcclFloat32 or another of its values");
  }
  const bool everywhere = type == hcclFloat32 || type == hcclBfloat16 || type == hcclFloat16 ||
                          type == hcclInt32 || type == hcclUint32;
  if (!everywhere && strict_mode()) {
    throw Error(hcclInvalidArgument,
                text("HCCL_STRICT=1: Gaudi's library takes no ", reduce::type_name(type),
                     "; pass float, bfloat16, half, int32 or uint32"));
  }
}

// `name` is "root" or "peer".
inline void check_rank(int rank, int size, const char* name) {
  if (rank < 0 || rank >= size)
    throw Error(hcclInvalidArgument, text(name, " is ", rank, " of ", size, " ranks"));
}

template <class Call>
void queue_or_keep(const CommunicatorPin& communicator, const StreamPin& stream, const Call& call) {
  if (comm::Group::is_open()) {
    communicator->check_usable(*stream);
    comm::Group::add(communicator.shared(), stream.shared(), call);
  } else if constexpr (std::is_same_v<Call, node::PointToPoint>) {
    std::vector calls{call};
    std::vector<comm::SelfCopy> copies = comm::pair_self_messages(calls, communicator->rank());
    communicator->check_usable(*stream);
    for (node::PointToPoint& one : calls) communicator->number(*stream, one);
    communicator->enqueue(*stream, std::move(calls), std::move(copies));
  } else {
    communicator->enqueue(*stream, call);
  }
}

}  // namespace hccl::api
