// SPDX-License-Identifier: Apache-2.0
#include "element_type.h"

#include <optional>

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

namespace hccl_torch {

namespace {

std::optional<hcclDataType_t> native(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
    case at::kComplexFloat:
      return hcclFloat32;
    case at::kDouble:
    case at::kComplexDouble:
      return hcclFloat64;
    case at::kHalf:
    case at::kComplexHalf:
      return hcclFloat16;
    case at::kBFloat16:
      return hcclBfloat16;
    case at::kChar:
      return hcclInt8;
    case at::kByte:
    case at::kBool:
      return hcclUint8;
    case at::kInt:
      return hcclInt32;
    case at::kLong:
      return hcclInt64;
    case at::kUInt32:
      return hcclUint32;
    case at::kUInt64:
      return hcclUint64;
    default:
      return std::nullopt;
  }
}

const char* name_of(const c10d::ReduceOp& operation) {
  static constexpr const char* kNames[] = {"SUM",  "AVG", "PRODUCT", "MIN",       "MAX",
                                           "BAND", "BOR", "BXOR",    "PREMUL_SUM"};
  return kNames[operation.op_];
}

// Truth values are the bytes 0 and 1, so their largest is their disjunction.
std::optional<hcclRedOp_t> logical(const c10d::ReduceOp& operation) {
  switch (operation.op_) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::MAX:
    case c10d::ReduceOp::BOR:
      return hcclMax;
    case c10d::ReduceOp::PRODUCT:
    case c10d::ReduceOp::MIN:
    case c10d::ReduceOp::BAND:
      return hcclMin;
    default:
      return std::nullopt;
  }
}

std::optional<hcclRedOp_t> arithmetic(const c10d::ReduceOp& operation, bool is_complex) {
  switch (operation.op_) {
    case c10d::ReduceOp::SUM:
      return hcclSum;
    case c10d::ReduceOp::AVG:
      return hcclAvg;
    case c10d::ReduceOp::PRODUCT:
      if (is_complex) return std::nullopt;
      return hcclProd;
    case c10d::ReduceOp::MIN:
      if (is_complex) return std::nullopt;
      return hcclMin;
    case c10d::ReduceOp::MAX:
      if (is_complex) return std::nullopt;
      return hcclMax;
    default:
      return std::nullopt;
  }
}

}  // namespace

Reduction reduction_of(const c10d::ReduceOp& operation, at::ScalarType type, const char* call) {
  const bool is_complex = c10::isComplexType(type);
  const std::optional<hcclDataType_t> element = native(type);
  const std::optional<hcclRedOp_t> reduction =
      type == at::kBool ? logical(operation) : arithmetic(operation, is_complex);
  TORCH_CHECK_TYPE(element && reduction, "hccl_torch: ", call, " cannot reduce ",
                   c10::toString(type), " with ", name_of(operation),
                   "; convert the tensor to float32 or another type that has the reduction");
  return {*element, *reduction, is_complex ? 2 : 1};
}

}  // namespace hccl_torch
