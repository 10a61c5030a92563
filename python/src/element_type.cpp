// SPDX-License-Identifier: Apache-2.0
#include "element_type.h"

#include <array>
#include <optional>

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>
#include <hccl_emulation.h>

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
  static constexpr std::array kNames = {"SUM",  "AVG", "PRODUCT", "MIN",        "MAX",
                                        "BAND", "BOR", "BXOR",    "PREMUL_SUM", "UNUSED"};
  return kNames.at(operation.op_);
}

// Truth values are the bytes 0 and 1, so their maximum is their disjunction.
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
    case c10d::ReduceOp::BXOR:
      return hcclEmulationBitXor;
    default:
      return std::nullopt;
  }
}

std::optional<hcclRedOp_t> bitwise(const c10d::ReduceOp& operation) {
  switch (operation.op_) {
    case c10d::ReduceOp::BAND:
      return hcclEmulationBitAnd;
    case c10d::ReduceOp::BOR:
      return hcclEmulationBitOr;
    case c10d::ReduceOp::BXOR:
      return hcclEmulationBitXor;
    default:
      return std::nullopt;
  }
}

// Complex numbers have no order, and their product is not that of their parts.
std::optional<hcclRedOp_t> arithmetic(const c10d::ReduceOp& operation, bool is_complex) {
  switch (operation.op_) {
    case c10d::ReduceOp::SUM:
      return hcclSum;
    case c10d::ReduceOp::AVG:
      return hcclAvg;
    case c10d::ReduceOp::PRODUCT:
      return is_complex ? std::nullopt : std::optional(hcclProd);
    case c10d::ReduceOp::MIN:
      return is_complex ? std::nullopt : std::optional(hcclMin);
    case c10d::ReduceOp::MAX:
      return is_complex ? std::nullopt : std::optional(hcclMax);
    default:
      return std::nullopt;
  }
}

std::optional<hcclRedOp_t> library_operation(const c10d::ReduceOp& operation, at::ScalarType type) {
  if (type == at::kBool) return logical(operation);
  if (c10::isIntegralType(type, false)) {
    if (const auto found = bitwise(operation)) return found;
  }
  if (operation.op_ == c10d::ReduceOp::PREMUL_SUM)
    return c10::isIntegralType(type, true) ? std::nullopt : std::optional(hcclSum);
  return arithmetic(operation, c10::isComplexType(type));
}

// Returns the factor in the tensor's type, so that the products keep that type.
at::Tensor factor_of(const c10d::ReduceOp& operation, at::ScalarType type) {
  if (operation.op_ != c10d::ReduceOp::PREMUL_SUM) return {};
  const auto* const supplement =
      static_cast<const c10d::PreMulSumSupplement*>(operation.supplement_.get());
  TORCH_CHECK_VALUE(supplement != nullptr,
                    "hccl_torch: PREMUL_SUM has no factor; make the "
                    "operation with torch.distributed._make_nccl_premul_sum");
  const at::Tensor factor = supplement->tensor_factor.defined()
                                ? supplement->tensor_factor
                                : at::scalar_tensor(supplement->double_factor, at::kDouble);
  return factor.reshape({}).to(at::kCPU, type);
}

}  // namespace

Reduction reduction_of(const c10d::ReduceOp& operation, at::ScalarType type, const char* call) {
  const std::optional<hcclDataType_t> element = native(type);
  const std::optional<hcclRedOp_t> reduction = library_operation(operation, type);
  TORCH_CHECK_TYPE(element && reduction, "hccl_torch: ", call, " cannot reduce ",
                   c10::toString(type), " with ", name_of(operation),
                   "; convert the tensor to float32 or another type that has the reduction");
  return {*element, *reduction, c10::isComplexType(type) ? 2 : 1, factor_of(operation, type)};
}

}  // namespace hccl_torch
