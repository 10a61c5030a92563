// SPDX-License-Identifier: Apache-2.0
// Tests the encoding and comparison of call headers, and the error texts for ranks whose calls do
// not match.
#include "network/call_header.h"

#include <gtest/gtest.h>

namespace hccl::network {
namespace {

CallHeader all_reduce() {
  return {.collective = static_cast<std::uint8_t>(Collective::all_reduce),
          .type = hcclFloat32,
          .operation = hcclSum,
          .number = 41,
          .count = 1025};
}

TEST(CallHeader, SurvivesEncoding) {
  const CallHeader header = all_reduce();
  EXPECT_EQ(CallHeader::from(header.bytes()), header);
}

TEST(CallHeader, IdentifiesCallAndPhaseDespiteConfirm) {
  CallHeader asking = all_reduce();
  asking.confirm = 1;
  EXPECT_TRUE(all_reduce().is_same_call(asking));
  CallHeader agreement = all_reduce();
  agreement.phase = CallHeader::Phase::agreement;
  EXPECT_FALSE(all_reduce().is_same_call(agreement));
}

TEST(CallHeader, NamesBothCallsOfMismatch) {
  CallHeader theirs = all_reduce();
  theirs.collective = static_cast<std::uint8_t>(Collective::broadcast);
  theirs.root = 2;
  EXPECT_EQ(why_unlike(3, all_reduce(), 0, theirs),
            "op 41: rank 3 all_reduce(1025, float, sum) but rank 0 broadcast(1025, float, root 2); "
            "every rank must make the same calls in the same order");
}

TEST(CallHeader, DistinguishesOtherReasons) {
  CallHeader later = all_reduce();
  later.number = 42;
  EXPECT_NE(why_unlike(3, all_reduce(), 0, later).find("in op 41 of a stream but rank 0 in op 42"),
            std::string::npos);
  CallHeader other = all_reduce();
  other.channels = 2;
  EXPECT_NE(why_unlike(3, all_reduce(), 0, other).find("different algorithms"), std::string::npos);
  CallHeader noise = all_reduce();
  noise.format = 7;
  EXPECT_NE(why_unlike(3, all_reduce(), 0, noise).find("install the same version"),
            std::string::npos);
}

}  // namespace
}  // namespace hccl::network
