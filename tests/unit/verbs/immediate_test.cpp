// SPDX-License-Identifier: Apache-2.0
// The 32 bits of a message: all of them are used, and none says two things.
#include "verbs/immediate.h"

#include "verbs/flow_control.h"
#include "verbs/sender.h"

#include <array>
#include <random>

#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

using Kind = Immediate::Kind;

constexpr std::array kKinds{Kind::data, Kind::credit, Kind::direct, Kind::advert};

TEST(Immediate, EveryKindTravels) {
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

TEST(Immediate, AnyBitsAreAMessage) {
  std::mt19937 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const Immediate message = decode(bits);
    EXPECT_EQ(encode(message), bits);
    EXPECT_LE(message.bytes, Immediate::kMaxBytes);
    EXPECT_LE(message.messages, Immediate::kMaxMessages);
  }
}

TEST(Immediate, EachFieldHasItsOwnBits) {
  const std::uint32_t bytes = encode({Kind::data, Immediate::kMaxBytes, 0});
  const std::uint32_t messages = encode({Kind::data, 0, Immediate::kMaxMessages});
  const std::uint32_t kind = encode({Kind::advert, 0, 0});
  EXPECT_EQ(bytes & messages, 0U);
  EXPECT_EQ(messages & kind, 0U);
  EXPECT_EQ(kind & bytes, 0U);
  EXPECT_EQ(bytes | messages | kind, 0xffffffffU);
}

TEST(Immediate, WhatTheWindowsAllowFits) {
  EXPECT_LE(kSlice, Immediate::kMaxBytes);
  const Immediate whole{Kind::credit, static_cast<std::uint32_t>(kRingBytes), kMaxMessages};
  EXPECT_EQ(decode(encode(whole)), whole) << "a credit for everything at once";
  EXPECT_GT(Immediate::kMaxMessages, 2 * kMaxAdverts)
      << "so few bits of the number of adverts tell which are meant";
}

}  // namespace
}  // namespace hccl::verbs
