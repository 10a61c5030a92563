// SPDX-License-Identifier: Apache-2.0
// Tests that records arrive as they were sealed, and that changed, repeated, reordered and dropped
// records are refused.
#include "crypto/record_cipher.h"

#include "crypto/keys.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::crypto {
namespace {

struct Record {
  Bytes header;
  Bytes body;
};

class Records : public testing::TestWithParam<Protection> {
 protected:
  [[nodiscard]] RecordCipher cipher(CipherUse use) const { return {use, GetParam(), key_}; }
  Bytes random_bytes(std::size_t count) {
    Bytes bytes(count);
    std::ranges::generate(bytes, [this] { return static_cast<std::byte>(random_()); });
    return bytes;
  }
  static Record seal(RecordCipher& cipher, const Bytes& plaintext) {
    Record record{{std::byte{4}, std::byte{2}}, Bytes(plaintext.size() + RecordCipher::kTagSize)};
    const std::span<const std::byte> part(plaintext);
    cipher.seal(record.header, {&part, 1}, record.body);
    return record;
  }
  static bool opens(RecordCipher& cipher, const Record& record) {
    Bytes plaintext(record.body.size() - RecordCipher::kTagSize, std::byte{0xEE});
    const bool authenticates = cipher.open(record.header, record.body, plaintext);
    EXPECT_TRUE(authenticates || plaintext == Bytes(plaintext.size())) << "forged bytes are shown";
    return authenticates;
  }

  std::mt19937 random_{20261128};
  const Bytes key_ = random_bytes(kKeySize);
};

INSTANTIATE_TEST_SUITE_P(All, Records, testing::Values(Protection::integrity, Protection::full),
                         [](const auto& protection) {
                           return protection.param == Protection::full ? "Full" : "Integrity";
                         });

TEST_P(Records, ArriveAsTheyWereSealed) {
  RecordCipher sealing = cipher(CipherUse::sealing);
  RecordCipher opening = cipher(CipherUse::opening);
  for (int round = 0; round < 200; ++round) {
    std::vector<Bytes> parts;
    std::vector<std::span<const std::byte>> views;
    Bytes whole;
    for (std::size_t i = 0; i < random_() % 5; ++i) {
      parts.push_back(random_bytes(random_() % 3000));
      whole.insert(whole.end(), parts.back().begin(), parts.back().end());
    }
    views.assign(parts.begin(), parts.end());
    const Bytes header = random_bytes(4);
    Bytes body(whole.size() + RecordCipher::kTagSize);
    sealing.seal(header, views, body);
    Bytes plaintext(whole.size(), std::byte{0xEE});
    ASSERT_TRUE(opening.open(header, body, plaintext));
    ASSERT_EQ(plaintext, whole);
  }
}

TEST_P(Records, HideTheirBytesOnlyWithFullProtection) {
  RecordCipher sealing = cipher(CipherUse::sealing);
  const Bytes plaintext = random_bytes(64);
  const Record record = seal(sealing, plaintext);
  const auto first = std::search(record.body.begin(), record.body.end(), plaintext.begin(),
                                 plaintext.begin() + 16);
  const bool shows = first != record.body.end();
  EXPECT_EQ(shows, GetParam() == Protection::integrity);
}

TEST_P(Records, AreRefusedIfAnyBitChanged) {
  RecordCipher sealing = cipher(CipherUse::sealing);
  const Record record = seal(sealing, random_bytes(20));
  const std::size_t bits = 8 * (record.header.size() + record.body.size());
  for (std::size_t bit = 0; bit < bits; ++bit) {
    Record changed = record;
    const std::size_t at = bit / 8;
    std::byte& byte =
        at < record.header.size() ? changed.header[at] : changed.body[at - record.header.size()];
    byte ^= std::byte{1} << static_cast<int>(bit % 8);
    RecordCipher opening = cipher(CipherUse::opening);
    EXPECT_FALSE(opens(opening, changed)) << "bit " << bit;
  }
}

TEST_P(Records, AreRefusedOutOfOrder) {
  RecordCipher sealing = cipher(CipherUse::sealing);
  const Record first = seal(sealing, random_bytes(20));
  const Record second = seal(sealing, random_bytes(20));
  RecordCipher skipping = cipher(CipherUse::opening);
  EXPECT_FALSE(opens(skipping, second));
  RecordCipher repeating = cipher(CipherUse::opening);
  EXPECT_TRUE(opens(repeating, first));
  EXPECT_FALSE(opens(repeating, first));
}

TEST_P(Records, AreRefusedWithAnotherKey) {
  RecordCipher sealing = cipher(CipherUse::sealing);
  const Record record = seal(sealing, random_bytes(20));
  RecordCipher other(CipherUse::opening, GetParam(), random_bytes(kKeySize));
  EXPECT_FALSE(opens(other, record));
}

TEST_P(Records, UseANewKeyAfterManyRecords) {
  RecordCipher sealing = cipher(CipherUse::sealing);
  RecordCipher opening = cipher(CipherUse::opening);
  const Bytes plaintext = random_bytes(1);
  for (std::uint64_t record = 0; record < RecordCipher::kRecordsPerKey; ++record)
    ASSERT_TRUE(opens(opening, seal(sealing, plaintext))) << record;
  const Record next = seal(sealing, plaintext);
  EXPECT_TRUE(opens(opening, next));
  RecordCipher with_next_key(CipherUse::opening, GetParam(), derive_key(key_, "hccl-next-key"));
  EXPECT_TRUE(opens(with_next_key, next));
  RecordCipher with_old_key = cipher(CipherUse::opening);
  EXPECT_FALSE(opens(with_old_key, next));
}

}  // namespace
}  // namespace hccl::crypto
