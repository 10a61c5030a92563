// SPDX-License-Identifier: Apache-2.0
// The data types and reductions hccl-perf knows, with the names nccl-tests gives them.
#pragma once

#include <hccl_types.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace hccl_perf {

struct DataType {
  const char* name;
  hcclDataType_t code;
  std::size_t size;  // bytes of an element
};

struct Reduction {
  const char* name;
  hcclRedOp_t code;
};

inline constexpr std::array<DataType, 3> kDataTypes{{
    {"float", hcclFloat32, 4},
    {"bfloat16", hcclBfloat16, 2},
    {"int32", hcclInt32, 4},
}};

inline constexpr std::array<Reduction, 3> kReductions{{
    {"sum", hcclSum},
    {"min", hcclMin},
    {"max", hcclMax},
}};

// What the table shows for collectives that reduce nothing.
inline constexpr Reduction kNoReduction{"none", hcclOpNone};

// One by name, or every one for "all". Throw UsageError naming the accepted ones.
[[nodiscard]] std::vector<DataType> parse_data_types(const std::string& name);
[[nodiscard]] std::vector<Reduction> parse_reductions(const std::string& name);

}  // namespace hccl_perf
