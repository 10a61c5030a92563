// SPDX-License-Identifier: Apache-2.0
#include "call/collective.h"

namespace hccl {

const char* name_of(Collective collective) {
  switch (collective) {
    case Collective::barrier:
      return "barrier";
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::broadcast:
      return "broadcast";
    case Collective::all_gather:
      return "all_gather";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::reduce:
      return "reduce";
    case Collective::all_to_all:
      return "all_to_all";
    case Collective::point_to_point:
      return "point_to_point";
  }
  return "unknown collective";
}

}  // namespace hccl
