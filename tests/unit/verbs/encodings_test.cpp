// SPDX-License-Identifier: Apache-2.0
// Tests the encodings used on the wire: the immediate of a message, and a published address.

#include "ranks.h"
#include "samples.h"
#include "transport/transport.h"
#include "verbs/flow_control.h"
#include "verbs/immediate.h"
#include "verbs/sender.h"
#include "verbs/verbs_address.h"

#include <array>
#include <random>

#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

// Tests immediates. The fields must use all 32 bits and must not overlap.

using Kind = Immediate::Kind;

constexpr std::array kKinds{Kind::data, Kind::credit, Kind::direct, Kind::advert};

TEST(Immediate, EveryKindSurvivesEncoding) {
  for (const Kind kind : kKinds) {
    for (const std::uint32_t bytes : {0U, 1U, 4096U, Immediate::kMaxBytes}) {
      for (const std::uint32_t messages : {0U, 1U, 128U, Immediate::kMaxMessages}) {
        const Immediate message{kind, bytes, messages};
        EXPECT_EQ(decode(encode(message)), message)
            << static_cast<int>(kind) << ' ' << bytes << ' ' << messages;
      }
    }
  }
}

TEST(Immediate, DecodesAnyBits) {
  std::mt19937 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const Immediate message = decode(bits);
    EXPECT_EQ(encode(message), bits);
    EXPECT_LE(message.bytes, Immediate::kMaxBytes);
    EXPECT_LE(message.messages, Immediate::kMaxMessages);
  }
}

TEST(Immediate, FieldsDoNotOverlap) {
  const std::uint32_t bytes = encode({Kind::data, Immediate::kMaxBytes, 0});
  const std::uint32_t messages = encode({Kind::data, 0, Immediate::kMaxMessages});
  const std::uint32_t kind = encode({Kind::advert, 0, 0});
  EXPECT_EQ(bytes & messages, 0U);
  EXPECT_EQ(messages & kind, 0U);
  EXPECT_EQ(kind & bytes, 0U);
  EXPECT_EQ(bytes | messages | kind, 0xffffffffU);
}

TEST(Immediate, HoldsWindowMaxima) {
  EXPECT_LE(kSlice, Immediate::kMaxBytes);
  const Immediate whole{Kind::credit, static_cast<std::uint32_t>(kRingBytes), kMaxMessages};
  EXPECT_EQ(decode(encode(whole)), whole) << "a credit for a whole ring and all messages";
  EXPECT_GT(Immediate::kMaxMessages, 2 * kMaxAdverts)
      << "the truncated number of adverts would be ambiguous";
}

// Tests published addresses. They must survive encoding, and malformed bytes must be refused.

using hccl::test::test_seed;

VerbsAddress address() { return {0x0123456789abcdef, test::v4(10, 77, 0, 2), 40001}; }

TEST(VerbsAddress, SurvivesEncoding) {
  EXPECT_EQ(parse_verbs_address(serialize(address())), address());
  const VerbsAddress six{1, test::v6(0xfd, 0x00, 7), 65535};
  EXPECT_EQ(parse_verbs_address(serialize(six)), six);
  EXPECT_LE(serialize(address()).size(), transport::kMaxAddressBytes);
}

TEST(VerbsAddress, RefusesWrongLength) {
  const Bytes whole = serialize(address());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_verbs_address(std::span(whole).first(size))) << size;
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(parse_verbs_address(longer));
}

TEST(VerbsAddress, RefusesOtherFormats) {
  for (int format = 0; format < 256; ++format) {
    Bytes other = serialize(address());
    if (other[0] == static_cast<std::byte>(format)) continue;
    other[0] = static_cast<std::byte>(format);
    EXPECT_FALSE(parse_verbs_address(other)) << format;
  }
}

TEST(VerbsAddress, RefusesPortZero) {
  VerbsAddress none = address();
  none.tcp_port = 0;
  EXPECT_FALSE(parse_verbs_address(serialize(none)));
  none.tcp_port = 1;
  EXPECT_TRUE(parse_verbs_address(serialize(none)));
}

TEST(VerbsAddress, ParsesGarbageExactlyOrNotAtAll) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "HCCL_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const Bytes known = serialize(address());
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes(random() % (known.size() + 2));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (!bytes.empty() && random() % 2 == 0) bytes[0] = known[0];
    const auto read = parse_verbs_address(bytes);
    EXPECT_TRUE(!read || serialize(*read) == bytes);
  }
}

TEST(VerbsAddress, GivesTcpAddressOfPort) {
  EXPECT_EQ(tcp_address(address()).to_text(), "10.77.0.2:40001");
  const VerbsAddress six{1, test::v6(0xfd, 0x00, 7), 80};
  EXPECT_EQ(tcp_address(six).to_text(), "[fd00::7]:80");
}

}  // namespace
}  // namespace hccl::verbs
