// SPDX-License-Identifier: Apache-2.0
#include "element_type.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>
#include <hccl_emulation.h>

namespace hccl_torch {

namespace {

// Returns the value for a key in a table of pairs, or nothing if the table does not contain the
// key.
template <class Table, class Key>
auto find(const Table& table, Key key) {
  const auto found = std::ranges::find(table, key, &Table::value_type::first);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

std::optional<hcclDataType_t> native(at::ScalarType type) {
  static constexpr std::array kTypes{
      std::pair{at::kFloat, hcclFloat32},     std::pair{at::kComplexFloat, hcclFloat32},
      std::pair{at::kDouble, hcclFloat64},    std::pair{at::kComplexDouble, hcclFloat64},
      std::pair{at::kHalf, hcclFloat16},      std::pair{at::kComplexHalf, hcclFloat16},
      std::pair{at::kBFloat16, hcclBfloat16}, std::pair{at::kChar, hcclInt8},
      std::pair{at::kByte, hcclUint8},        std::pair{at::kBool, hcclUint8},
      std::pair{at::kInt, hcclInt32},         std::pair{at::kLong, hcclInt64},
      std::pair{at::kUInt32, hcclUint32},     std::pair{at::kUInt64, hcclUint64}};
  return find(kTypes, type);
}

const char* name_of(const c10d::ReduceOp& operation) {
  static constexpr std::array kNames = {"SUM",  "AVG", "PRODUCT", "MIN",        "MAX",
                                        "BAND", "BOR", "BXOR",    "PREMUL_SUM", "UNUSED"};
  return kNames.at(operation.op_);
}

using Op = c10d::ReduceOp;
using OpPair = std::pair<Op::RedOpType, hcclRedOp_t>;

// Boolean values are the bytes 0 and 1, so max computes their logical OR, and min the logical AND.
constexpr std::array kLogical{OpPair{Op::SUM, hcclMax},
                              OpPair{Op::MAX, hcclMax},
                              OpPair{Op::BOR, hcclMax},
                              OpPair{Op::PRODUCT, hcclMin},
                              OpPair{Op::MIN, hcclMin},
                              OpPair{Op::BAND, hcclMin},
                              OpPair{Op::BXOR, hcclEmulationBitXor}};
constexpr std::array kBitwise{OpPair{Op::BAND, hcclEmulationBitAnd},
                              OpPair{Op::BOR, hcclEmulationBitOr},
                              OpPair{Op::BXOR, hcclEmulationBitXor}};
constexpr std::array kArithmetic{OpPair{Op::SUM, hcclSum}, OpPair{Op::AVG, hcclAvg},
                                 OpPair{Op::PRODUCT, hcclProd}, OpPair{Op::MIN, hcclMin},
                                 OpPair{Op::MAX, hcclMax}};
// Complex numbers have no order, and their product mixes real and imaginary parts, so this table
// has only sum and average.
constexpr std::array kComplex{kArithmetic[0], kArithmetic[1]};

std::optional<hcclRedOp_t> library_operation(const c10d::ReduceOp& operation, at::ScalarType type) {
  const Op::RedOpType op = operation.op_;
  if (type == at::kBool) return find(kLogical, op);
  if (c10::isIntegralType(type, false)) {
    if (const auto found = find(kBitwise, op)) return found;
  }
  if (op == Op::PREMUL_SUM)
    return c10::isIntegralType(type, true) ? std::nullopt : std::optional(hcclSum);
  return c10::isComplexType(type) ? find(kComplex, op) : find(kArithmetic, op);
}

// Returns PREMUL_SUM's factor in the tensor's type, so that the products have that type too, or an
// undefined tensor for other reductions.
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
                   "; convert the tensor to float32 or another type that supports the reduction");
  return {*element, *reduction, c10::isComplexType(type) ? 2 : 1, factor_of(operation, type)};
}

}  // namespace hccl_torch
