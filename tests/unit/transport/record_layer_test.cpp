// SPDX-License-Identifier: Apache-2.0
// Tests the records of a protected TCP stream without a socket.
#include "tcp/record_layer.h"

#include "crypto/keys.h"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::tcp {
namespace {

class ProtectedRecords : public testing::TestWithParam<Protection> {
 protected:
  ProtectedRecords() { renew(); }

  // Begins a new stream.
  void renew() {
    sender_.emplace(GetParam(), transport::StreamKeys{one_, two_});
    receiver_.emplace(GetParam(), transport::StreamKeys{two_, one_});
  }
  // Returns the sealed records of the bytes, cut into parts of random sizes.
  Bytes seal_all(const Bytes& bytes) {
    Bytes sealed;
    std::size_t at = 0;
    while (at < bytes.size()) {
      std::vector<std::span<const std::byte>> parts;
      for (std::size_t next = at; next < bytes.size() && parts.size() < 20;) {
        const std::size_t count = std::min<std::size_t>(random_() % 50'000, bytes.size() - next);
        parts.push_back(std::span(bytes).subspan(next, count));
        next += count;
      }
      at += sender_->seal(parts);
      const auto outgoing = sender_->outgoing();
      sealed.insert(sealed.end(), outgoing.begin(), outgoing.end());
      sender_->note_sent(outgoing.size());
    }
    return sealed;
  }
  // Passes sealed bytes to the receiver in pieces of random sizes, and returns what it takes.
  Bytes open_all(std::span<const std::byte> sealed, RecordLayer::Taken& last) {
    Bytes opened;
    while (true) {
      const auto room = receiver_->room();
      const std::size_t count =
          std::min({room.size(), sealed.size(), std::size_t{1} + random_() % 90'000});
      std::copy_n(sealed.begin(), count, room.begin());
      receiver_->note_arrived(count);
      sealed = sealed.subspan(count);
      do {
        Bytes piece(1 + random_() % 100'000);
        std::size_t moved = 0;
        last = receiver_->take(piece, moved);
        opened.insert(opened.end(), piece.begin(), piece.begin() + static_cast<long>(moved));
      } while (last == RecordLayer::Taken::moved);
      if (last == RecordLayer::Taken::forged || sealed.empty()) return opened;
    }
  }
  Bytes random_bytes(std::size_t count) {
    Bytes bytes(count);
    std::ranges::generate(bytes, [this] { return static_cast<std::byte>(random_()); });
    return bytes;
  }

  std::mt19937 random_{20261129};
  const SecretBytes one_ = SecretBytes(crypto::kKeySize, std::byte{1});
  const SecretBytes two_ = SecretBytes(crypto::kKeySize, std::byte{2});
  std::optional<RecordLayer> sender_;
  std::optional<RecordLayer> receiver_;
};

INSTANTIATE_TEST_SUITE_P(All, ProtectedRecords,
                         testing::Values(Protection::integrity, Protection::full),
                         [](const auto& protection) {
                           return protection.param == Protection::full ? "Full" : "Integrity";
                         });

TEST_P(ProtectedRecords, ArriveWholeInPiecesOfAnySize) {
  const Bytes bytes = random_bytes(5'000'000);
  RecordLayer::Taken last{};
  EXPECT_EQ(open_all(seal_all(bytes), last), bytes);
  EXPECT_EQ(last, RecordLayer::Taken::nothing);
}

TEST_P(ProtectedRecords, EndAtTheFirstForgedRecord) {
  for (int round = 0; round < 50; ++round) {
    renew();
    const Bytes bytes = random_bytes(300'000);
    Bytes sealed = seal_all(bytes);
    const std::size_t at = random_() % sealed.size();
    sealed[at] ^= std::byte{1} << static_cast<int>(random_() % 8);
    RecordLayer::Taken last{};
    const Bytes opened = open_all(sealed, last);
    // A length that has grown may leave the record incomplete.
    EXPECT_NE(last, RecordLayer::Taken::moved);
    ASSERT_LT(opened.size(), bytes.size());
    ASSERT_TRUE(std::equal(opened.begin(), opened.end(), bytes.begin()))
        << "no wrong byte is delivered";
  }
}

}  // namespace
}  // namespace hccl::tcp
