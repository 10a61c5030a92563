// SPDX-License-Identifier: Apache-2.0
// Sizes and names of the data types and reductions, for arithmetic on buffers and for messages.
#include "reduce/reduce.h"

namespace hccl::reduce {

const char* type_name(hcclDataType_t type) noexcept {
  switch (type) {
    case hcclInt8:
      return "int8";
    case hcclUint8:
      return "uint8";
    case hcclInt32:
      return "int32";
    case hcclUint32:
      return "uint32";
    case hcclInt64:
      return "int64";
    case hcclUint64:
      return "uint64";
    case hcclFloat16:
      return "half";
    case hcclFloat32:
      return "float";
    case hcclFloat64:
      return "double";
    case hcclBfloat16:
      return "bfloat16";
    case hcclNumTypes:
      break;
  }
  return "unknown type";
}

const char* operation_name(hcclRedOp_t operation) noexcept {
  switch (operation) {
    case hcclSum:
      return "sum";
    case hcclProd:
      return "prod";
    case hcclMin:
      return "min";
    case hcclMax:
      return "max";
    case hcclAvg:
      return "avg";
    case hcclOpNone:
      return "none";
  }
  if (operation == hcclEmulationBitAnd) return "bitand";
  if (operation == hcclEmulationBitOr) return "bitor";
  if (operation == hcclEmulationBitXor) return "bitxor";
  return "unknown operation";
}

}  // namespace hccl::reduce
