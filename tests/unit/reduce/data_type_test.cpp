// SPDX-License-Identifier: Apache-2.0
// Tests the sizes and names of data types, the names of reductions, and the supported pairs.
#include "reduce/reduce.h"

#include <array>

#include <gtest/gtest.h>

namespace hccl::reduce {
namespace {

struct Fact {
  hcclDataType_t type;
  std::size_t bytes;
  const char* name;
};

constexpr std::array kTypes = {
    Fact{hcclInt8, 1, "int8"},      Fact{hcclUint8, 1, "uint8"},
    Fact{hcclInt32, 4, "int32"},    Fact{hcclUint32, 4, "uint32"},
    Fact{hcclInt64, 8, "int64"},    Fact{hcclUint64, 8, "uint64"},
    Fact{hcclFloat16, 2, "half"},   Fact{hcclFloat32, 4, "float"},
    Fact{hcclFloat64, 8, "double"}, Fact{hcclBfloat16, 2, "bfloat16"},
};

TEST(DataType, HasSizeAndName) {
  for (const Fact& fact : kTypes) {
    EXPECT_EQ(element_size(fact.type), fact.bytes) << fact.name;
    EXPECT_STREQ(type_name(fact.type), fact.name);
  }
}

TEST(DataType, UnknownNumberHasNoSize) {
  for (const int number : {static_cast<int>(hcclNumTypes), 11, 15}) {
    const auto type = static_cast<hcclDataType_t>(number);
    EXPECT_EQ(element_size(type), 0u) << number;
    EXPECT_STREQ(type_name(type), "unknown type") << number;
    EXPECT_FALSE(supports(type, hcclSum)) << number;
  }
}

TEST(Reduction, HasName) {
  EXPECT_STREQ(operation_name(hcclSum), "sum");
  EXPECT_STREQ(operation_name(hcclProd), "prod");
  EXPECT_STREQ(operation_name(hcclMin), "min");
  EXPECT_STREQ(operation_name(hcclMax), "max");
  EXPECT_STREQ(operation_name(hcclAvg), "avg");
  EXPECT_STREQ(operation_name(hcclOpNone), "none");
  EXPECT_STREQ(operation_name(hcclEmulationBitAnd), "bitand");
  EXPECT_STREQ(operation_name(hcclEmulationBitOr), "bitor");
  EXPECT_STREQ(operation_name(hcclEmulationBitXor), "bitxor");
  for (const int number : {6, 7, 63, 67})
    EXPECT_STREQ(operation_name(static_cast<hcclRedOp_t>(number)), "unknown operation") << number;
}

TEST(Reduction, IsSupportedForEveryType) {
  for (const Fact& fact : kTypes) {
    for (const hcclRedOp_t operation : {hcclSum, hcclProd, hcclMin, hcclMax, hcclAvg}) {
      EXPECT_TRUE(supports(fact.type, operation)) << fact.name;
    }
    for (const int number : {static_cast<int>(hcclOpNone), 6, 63, 67})
      EXPECT_FALSE(supports(fact.type, static_cast<hcclRedOp_t>(number))) << fact.name;
    const bool is_integer = fact.type <= hcclUint64;
    for (const hcclRedOp_t operation :
         {hcclEmulationBitAnd, hcclEmulationBitOr, hcclEmulationBitXor}) {
      EXPECT_EQ(supports(fact.type, operation), is_integer) << fact.name;
    }
  }
}

}  // namespace
}  // namespace hccl::reduce
