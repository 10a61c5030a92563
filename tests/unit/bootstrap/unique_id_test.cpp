// SPDX-License-Identifier: Apache-2.0
// Unique ids must survive all ways in which programs copy them, and damaged ids must be refused.
#include "bootstrap/unique_id.h"

#include "base/error.h"
#include "base/secret.h"
#include "thrown.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

namespace hccl::bootstrap {
namespace {

Address loopback(std::uint16_t port) {
  Address address;
  address.bytes = {127, 0, 0, 1};
  address.port = port;
  return address;
}

UniqueId sample() {
  UniqueId id;
  id.secret = random_secret();
  id.addresses = {loopback(4711), Address{true, {0xfd, 1, 2, 3}, 5, 65535}};
  return id;
}

void expect_same(const UniqueId& a, const UniqueId& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.secret, b.secret);
  EXPECT_EQ(a.addresses, b.addresses);
}

std::string refusal(const hcclUniqueId& id) {
  return hccl::test::error_of(hcclInvalidArgument, [&] { return decode(id); });
}

TEST(UniqueId, SurvivesFullCopy) {
  const UniqueId id = sample();
  const hcclUniqueId encoded = encode(id);
  EXPECT_GT(encoded.length, 0U);
  EXPECT_LE(encoded.length, sizeof(encoded.internal));
  hcclUniqueId copy;
  std::memcpy(&copy, &encoded, sizeof(copy));
  expect_same(decode(copy), id);
}

TEST(UniqueId, SurvivesCopyOfUsedBytes) {
  const UniqueId id = sample();
  const hcclUniqueId encoded = encode(id);
  hcclUniqueId copy;
  std::memset(&copy, 0xa5, sizeof(copy));
  std::memcpy(copy.internal, encoded.internal, encoded.length);
  copy.length = encoded.length;
  expect_same(decode(copy), id);
  copy.length = sizeof(copy.internal);  // set by hand, and too large
  expect_same(decode(copy), id);
}

TEST(UniqueId, KeysIdentifyServers) {
  const UniqueId one = sample();
  EXPECT_EQ(decode(encode(one)).key(), one.key());
  EXPECT_NE(sample().key(), one.key());
  UniqueId fixed;
  fixed.kind = UniqueId::Kind::fixed_address;
  fixed.addresses = {loopback(5000)};
  UniqueId other = fixed;
  EXPECT_EQ(fixed.key(), other.key());
  other.addresses = {loopback(5001)};
  EXPECT_NE(fixed.key(), other.key());
}

TEST(UniqueId, RefusesEmptyIds) {
  EXPECT_TRUE(is_empty(hcclUniqueId{}));
  EXPECT_NE(refusal(hcclUniqueId{}).find("is empty"), std::string::npos);
  hcclUniqueId no_length = encode(sample());
  no_length.length = 0;
  EXPECT_TRUE(is_empty(no_length));
  hcclUniqueId no_content{};
  no_content.length = 100;
  EXPECT_TRUE(is_empty(no_content));
  EXPECT_FALSE(is_empty(encode(sample())));
}

TEST(UniqueId, DetectsEveryFlippedBit) {
  const hcclUniqueId encoded = encode(sample());
  for (std::size_t bit = 0; bit < encoded.length * 8; ++bit) {
    hcclUniqueId damaged = encoded;
    damaged.internal[bit / 8] =
        static_cast<std::uint8_t>(damaged.internal[bit / 8] ^ 1U << bit % 8);
    EXPECT_NE(refusal(damaged), "") << "bit " << bit;
  }
}

TEST(UniqueId, DetectsTruncation) {
  const hcclUniqueId encoded = encode(sample());
  for (std::size_t length = 1; length < encoded.length; ++length) {
    hcclUniqueId cut = encoded;
    cut.length = length;
    EXPECT_NE(refusal(cut), "") << length;
    hcclUniqueId zeroed = encoded;
    std::memset(zeroed.internal + length, 0, sizeof(zeroed.internal) - length);
    if (std::memcmp(&zeroed, &encoded, sizeof zeroed) == 0) continue;  // the id ended in zeros
    EXPECT_NE(refusal(zeroed), "") << length;
  }
  hcclUniqueId huge = encoded;
  huge.length = sizeof(huge.internal) + 1;
  EXPECT_NE(refusal(huge), "");
}

TEST(UniqueId, RefusesRandomBytes) {
  std::mt19937 random(20260104);
  for (int i = 0; i < 2000; ++i) {
    hcclUniqueId noise = encode(sample());
    const std::size_t from = i % 2 == 0 ? 8 : 0;
    for (std::size_t at = from; at < 200; ++at) {
      noise.internal[at] = static_cast<std::uint8_t>(random());
    }
    noise.length = 1 + random() % sizeof(noise.internal);
    EXPECT_NE(refusal(noise), "");
  }
}

}  // namespace
}  // namespace hccl::bootstrap
