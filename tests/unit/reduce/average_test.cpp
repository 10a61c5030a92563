// SPDX-License-Identifier: Apache-2.0
// Averages of complete sums, against the scalar reference.
#include "elements.h"
#include "reduce/reduce.h"
#include "scalar_fold.h"

#include <vector>

#include <gtest/gtest.h>

namespace hccl::reduce {
namespace {

TEST(AverageTile, GivesTheBitsOfTheReference) {
  constexpr std::size_t kCount = 300;
  for (const hcclDataType_t type : test::kAllTypes) {
    const std::size_t size = element_size(type);
    for (const std::uint32_t parts : {1U, 2U, 3U, 7U, 100U}) {
      std::vector<std::byte> values(kCount * size);
      std::vector<std::byte> expected(values.size());
      for (std::size_t i = 0; i < kCount; ++i) {
        const std::uint64_t sum = test::element_word(type, test::Data::numbers, 9, 0, i);
        test::store_word(type, &values[i * size], sum);
        const std::uint64_t mean =
            parts == 1 ? sum : test::fold(type, hcclAvg, {sum}, std::size_t{parts});
        test::store_word(type, &expected[i * size], mean);
      }
      average_tile(type, values.data(), kCount, parts);
      EXPECT_EQ(values, expected) << type_name(type) << " of " << parts;
    }
  }
}

// More ranks than the type can count.
TEST(AverageTile, DividesSmallIntegersByLargeNumbers) {
  std::byte value{0x80};  // -128
  average_tile(hcclInt8, &value, 1, 200);
  EXPECT_EQ(value, std::byte{0});
  value = std::byte{200};
  average_tile(hcclUint8, &value, 1, 300);
  EXPECT_EQ(value, std::byte{0});
}

}  // namespace
}  // namespace hccl::reduce
