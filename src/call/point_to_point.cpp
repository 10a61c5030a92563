// SPDX-License-Identifier: Apache-2.0
#include "call/point_to_point.h"

#include "base/text.h"

namespace hccl {

std::string describe(const PointToPoint& call) {
  const bool sends = call.direction == Direction::send;
  return text(sends ? "send(" : "recv(", call.count, ", ",
              reduce::type_name(static_cast<hcclDataType_t>(call.type)),
              sends ? ") to rank " : ") from rank ", call.peer);
}

}  // namespace hccl
