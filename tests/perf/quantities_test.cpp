// SPDX-License-Identifier: Apache-2.0
// Tests the parsing and formatting of sizes, sweeps of sizes, and lists of ranks.
#include "quantities.h"

#include "text.h"

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

TEST(ParseBytes, AcceptsBinarySuffixesInEitherCase) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("8"), 8U);
  EXPECT_EQ(parse_bytes("8B"), 8U);
  EXPECT_EQ(parse_bytes("1K"), 1024U);
  EXPECT_EQ(parse_bytes("1k"), 1024U);
  EXPECT_EQ(parse_bytes("64M"), 64U << 20);
  EXPECT_EQ(parse_bytes("64MB"), 64U << 20);
  EXPECT_EQ(parse_bytes("64MiB"), 64U << 20);
  EXPECT_EQ(parse_bytes("32b"), 32U);
  EXPECT_EQ(parse_bytes("64mb"), 64U << 20);
  EXPECT_EQ(parse_bytes("2gib"), 2ULL << 30);
  EXPECT_EQ(parse_bytes("2G"), 2ULL << 30);
  EXPECT_EQ(parse_bytes("1T"), 1ULL << 40);
  EXPECT_EQ(parse_bytes("1.5M"), 3ULL << 19);
}

TEST(ParseBytes, RefusesInvalidSizes) {
  for (const char* written :
       {"", "M", "-8", "8Q", "8MM", "1..5M", "0x10", " 8", "8 M", "99999999999999T"}) {
    EXPECT_THROW(static_cast<void>(parse_bytes(written)), UsageError) << written;
  }
}

TEST(FormatBytes, UsesTheLargestUnitThatFits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(32 << 10), "32 KiB");
  EXPECT_EQ(format_bytes(3ULL << 19), "1.5 MiB");
  EXPECT_EQ(format_bytes(5ULL << 40), "5 TiB");
}

TEST(SizeSweep, GrowsByFactorOrByStep) {
  EXPECT_EQ(size_sweep(8, 64, 1, 2), (std::vector<std::uint64_t>{8, 16, 32, 64}));
  EXPECT_EQ(size_sweep(8, 100, 1, 8), (std::vector<std::uint64_t>{8, 64}));
  EXPECT_EQ(size_sweep(10, 35, 10, 1), (std::vector<std::uint64_t>{10, 20, 30}));
  EXPECT_EQ(size_sweep(5, 5, 0, 1), (std::vector<std::uint64_t>{5}));
}

TEST(SizeSweep, EndsWhenItCannotGrow) {
  EXPECT_EQ(size_sweep(0, 64, 1, 2), (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(size_sweep(1ULL << 62, UINT64_MAX, 1, 8), (std::vector<std::uint64_t>{1ULL << 62}));
}

TEST(FormatRanks, JoinsConsecutiveRanks) {
  EXPECT_EQ(format_ranks({}), "");
  EXPECT_EQ(format_ranks({3}), "3");
  EXPECT_EQ(format_ranks({0, 1}), "0,1");
  EXPECT_EQ(format_ranks({0, 1, 2, 5, 7, 8}), "0-2,5,7,8");
}

}  // namespace
}  // namespace hccl_perf
