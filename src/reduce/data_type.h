// SPDX-License-Identifier: Apache-2.0
// The table of data types. Their arithmetic is in plain.h and in the vector kernels.
#pragma once

#include <hccl_types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace hccl::reduce {

struct DataType {
  const char* name;
  std::uint8_t bytes;   // of one element
  bool is_integer;      // has bitwise reductions
  bool needs_prescale;  // see needs_prescale() in reduce.h
  bool on_gaudi;        // supported by Gaudi's collectives
};

// Indexed by hcclDataType_t.
inline constexpr std::array<DataType, hcclNumTypes> kDataTypes{{
    {"int8", 1, true, false, false},
    {"uint8", 1, true, false, false},
    {"int32", 4, true, false, true},
    {"uint32", 4, true, false, true},
    {"int64", 8, true, false, false},
    {"uint64", 8, true, false, false},
    {"half", 2, false, true, true},
    {"float", 4, false, false, true},
    {"double", 8, false, false, false},
    {"bfloat16", 2, false, true, true},
}};

inline constexpr DataType kUnknownType{"unknown type", 0, false, false, false};

// Returns the row of a type, or kUnknownType for a value that is not a data type.
[[nodiscard]] constexpr const DataType& data_type(hcclDataType_t type) noexcept {
  const auto number = static_cast<std::size_t>(type);
  return number < kDataTypes.size() ? kDataTypes[number] : kUnknownType;
}

}  // namespace hccl::reduce
