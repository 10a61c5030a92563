// SPDX-License-Identifier: Apache-2.0
// The data types and reductions of hccl-perf. All except kBitReductions are named as in nccl-tests.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <hccl_emulation.h>

namespace hccl_perf {

struct DataType {
  const char* name;
  hcclDataType_t code;
  std::size_t size;  // bytes of one element
};

struct Reduction {
  const char* name;
  hcclRedOp_t code;
};

inline constexpr std::array<DataType, 10> kDataTypes{{
    {"int8", hcclInt8, 1},
    {"uint8", hcclUint8, 1},
    {"int32", hcclInt32, 4},
    {"uint32", hcclUint32, 4},
    {"int64", hcclInt64, 8},
    {"uint64", hcclUint64, 8},
    {"half", hcclFloat16, 2},
    {"float", hcclFloat32, 4},
    {"double", hcclFloat64, 8},
    {"bfloat16", hcclBfloat16, 2},
}};

inline constexpr std::array<Reduction, 5> kReductions{{
    {"sum", hcclSum},
    {"prod", hcclProd},
    {"min", hcclMin},
    {"max", hcclMax},
    {"avg", hcclAvg},
}};

// Reductions for integers only. The name "all" does not include them.
inline constexpr std::array<Reduction, 3> kBitReductions{{
    {"bitand", hcclEmulationBitAnd},
    {"bitor", hcclEmulationBitOr},
    {"bitxor", hcclEmulationBitXor},
}};

// The name shown in the table's reduction column for collectives without a reduction.
inline constexpr Reduction kNoReduction{"none", hcclOpNone};

// Returns the names, separated by commas.
[[nodiscard]] std::string accepted_data_types();

// Return the entry with this name. For "all", return all data types, or all of kReductions. Types
// have synonyms, such as float32, fp32 and f32 for "float". For any other name, throw a UsageError
// that lists the accepted names, but not the synonyms.
[[nodiscard]] std::vector<DataType> parse_data_types(const std::string& name);
[[nodiscard]] std::vector<Reduction> parse_reductions(const std::string& name);
// Throws UsageError if a reduction for integers is combined with a type that is not an integer
// type.
void check_types(const std::vector<Reduction>& reductions, const std::vector<DataType>& types);

}  // namespace hccl_perf
