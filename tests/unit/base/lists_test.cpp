// SPDX-License-Identifier: Apache-2.0
// Tests how device lists are parsed and rank lists are printed.

#include "base/device_list.h"
#include "base/rank_text.h"

#include <gtest/gtest.h>

namespace hccl {
namespace {

// Tests the notation of HCCL_IB_HCA: matching ports, and malformed lists.

// Returns one letter for each of the ports mlx5_0:1, mlx5_0:2, mlx5_1:1, mlx5_10:1 and rxe0:1: y if
// the text names the port, otherwise n. Returns an empty string if the text is malformed.
std::string named(const std::string& text) {
  const auto list = parse_device_list(text);
  if (!list) return "";
  std::string answers;
  for (const auto& [device, port] :
       {std::pair("mlx5_0", 1), {"mlx5_0", 2}, {"mlx5_1", 1}, {"mlx5_10", 1}, {"rxe0", 1}}) {
    answers += list->names(device, port) ? 'y' : 'n';
  }
  return answers;
}

TEST(DeviceList, NamesMatchAsPrefixes) {
  EXPECT_EQ(named(""), "yyyyy");
  EXPECT_EQ(named("mlx5"), "yyyyn");
  EXPECT_EQ(named("mlx5_1"), "nnyyn");
  EXPECT_EQ(named("rxe,mlx5_0"), "yynny");
  EXPECT_EQ(named("mlx5_0:2"), "nynnn");
  EXPECT_EQ(named("mlx5:1"), "ynyyn");
  EXPECT_EQ(named("eth"), "nnnnn");
}

TEST(DeviceList, EqualsSignRequiresWholeNames) {
  EXPECT_EQ(named("=mlx5_1"), "nnynn");
  EXPECT_EQ(named("=mlx5_0:1,rxe0"), "ynnny");
  EXPECT_EQ(named("=mlx5"), "nnnnn");
}

TEST(DeviceList, CaretExcludesNamedDevices) {
  EXPECT_EQ(named("^mlx5_1"), "yynny");
  EXPECT_EQ(named("^=mlx5_1"), "yynyy");
  EXPECT_EQ(named("^mlx5_0:1,rxe"), "nyyyn");
  EXPECT_EQ(named("^mlx5,rxe"), "nnnnn");
}

TEST(DeviceList, FirstMatchDeterminesOrder) {
  const auto list = parse_device_list("mlx5_1,mlx5,=odd");
  EXPECT_FALSE(list.has_value());
  const auto good = parse_device_list("mlx5_1,mlx5_0:2,mlx5");
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(good->position_of("mlx5_10", 1), 0U);
  EXPECT_EQ(good->position_of("mlx5_0", 2), 1U);
  EXPECT_EQ(good->position_of("mlx5_0", 1), 2U);
  EXPECT_EQ(good->position_of("mlx5_0", 0), 1U) << "a device whose ports are unknown";
  EXPECT_EQ(good->position_of("rxe0", 1), std::nullopt);
}

TEST(DeviceList, RefusesMalformedLists) {
  for (const char* text : {",",
                           "mlx5_0,",
                           ",mlx5_0",
                           "mlx5_0,,mlx5_1",
                           "^",
                           "=",
                           "^=",
                           "=^mlx5_0",
                           "mlx5 0",
                           " mlx5_0",
                           "mlx5_0, mlx5_1",
                           "mlx5_0:",
                           "mlx5_0:0",
                           "mlx5_0:256",
                           "mlx5_0:one",
                           "mlx5_0:-1",
                           "mlx5_0:1:2",
                           ":1",
                           "mlx5/0",
                           "mlx5\n",
                           "mlx5_0,^mlx5_1",
                           "mlx5_0,=mlx5_1",
                           "ml\xc3\xa4x"}) {
    EXPECT_FALSE(parse_device_list(text).has_value()) << text;
  }
  EXPECT_TRUE(parse_device_list(std::string(63, 'a')).has_value());
  EXPECT_FALSE(parse_device_list(std::string(64, 'a')).has_value());
  EXPECT_FALSE(parse_device_list(std::string_view("a\0b", 3)).has_value());
}

// Tests how rank lists are printed.

TEST(RankList, JoinsConsecutiveRanks) {
  EXPECT_EQ(rank_list({3}), "rank 3");
  EXPECT_EQ(rank_list({3, 5}), "ranks 3,5");
  EXPECT_EQ(rank_list({0, 1, 2, 4, 5, 9}), "ranks 0-2,4,5,9");
  std::vector<int> odd;
  for (int rank = 1; rank < 1000; rank += 2) odd.push_back(rank);
  EXPECT_LT(rank_list(odd).size(), 200U);
}

TEST(RankText, NamesProcessAndHost) { EXPECT_EQ(rank_text(3, 42, "a"), "rank 3 (pid 42, host a)"); }

}  // namespace
}  // namespace hccl
