// SPDX-License-Identifier: Apache-2.0
// Tests that the ranks of a communicator agree on a secret, and that core dumps do not contain it.
#include "crypto/keys.h"
#include "dumped_memory.h"
#include "loopback_test.h"
#include "ranks.h"
#include "relay.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

namespace hccl::bootstrap::test {
namespace {

// The complement of a secret. The tests store no secret themselves, because they search for it.
using Complement = std::array<std::uint8_t, kSecretSize>;

class SecretOfCommunicator : public ServerTest {
 protected:
  // Joins rank 0 with the first id and rank 1 with the second, which must lead to one server.
  // Returns the complements of the secrets that the ranks received. The secrets exist until the
  // end of the test.
  std::array<Complement, 2> join_two(const hcclUniqueId& first, const hcclUniqueId& second) {
    std::array<Complement, 2> complements{};
    const auto join_one = [&](const hcclUniqueId& own, std::size_t rank) {
      Contribution mine = contribution_of(static_cast<int>(rank));
      mine.announces_always = true;
      mine.announce = [this, &complements, rank](const CommunicatorSecret& secret) {
        EXPECT_EQ(secret.bytes->size(), kSecretSize);
        EXPECT_FALSE(crypto::derive_key(*secret.bytes, "test").empty());
        secrets_[rank] = secret.bytes;
        for (std::size_t i = 0; i < kSecretSize; ++i)
          complements[rank][i] = static_cast<std::uint8_t>(~(*secret.bytes)[i]);
        return Bytes(1);
      };
      tables_[rank] = join(
          own, 2, static_cast<int>(rank), std::move(mine),
          [](int ranks) { return memory_with(-ranks); }, Deadline::after(kPatience));
    };
    std::thread other([&] { join_one(second, 1); });
    join_one(first, 0);
    other.join();
    return complements;
  }

 private:
  std::array<RankTable, 2> tables_;
  std::array<std::shared_ptr<const SecretBytes>, 2> secrets_;
};

class HiddenSecret : public SecretOfCommunicator {
 protected:
  void SetUp() override {
    if (hccl::test::sanitized()) GTEST_SKIP() << "needs another build: without sanitizers";
  }
  // Searches for the second half of the secret, because malloc() writes to the start of memory that
  // is freed.
  static void expect_hidden(const std::array<Complement, 2>& complements) {
    constexpr std::size_t kHalf = kSecretSize / 2;
    const auto complement = [&](std::size_t i) { return complements[0].at(kHalf + i); };
    EXPECT_EQ(complements[0], complements[1]);
    EXPECT_FALSE(hccl::test::dump_contains(kHalf, complement));
    // The search finds the secret in ordinary memory.
    std::vector<std::uint8_t> copy;
    for (const std::uint8_t byte : complements[0]) copy.push_back(static_cast<std::uint8_t>(~byte));
    EXPECT_EQ(copy.size(), kSecretSize);
    EXPECT_TRUE(hccl::test::dump_contains(kHalf, complement));
  }
};

TEST_F(SecretOfCommunicator, DiffersFromThoseOfOthers) {
  const auto first = join_two(id(), id());
  const hcclUniqueId other = create_unique_id();
  const auto second = join_two(other, other);
  EXPECT_EQ(first[0], first[1]);
  EXPECT_EQ(second[0], second[1]);
  EXPECT_NE(first[0], second[0]);
}

TEST_F(HiddenSecret, IsNotInCoreDumpsAfterJoiningOverUnixSocket) {
  expect_hidden(join_two(id(), id()));
}

TEST_F(HiddenSecret, IsNotInCoreDumpsAfterJoiningOverTls) {
  const Relay relay(server(), std::nullopt);  // no unix socket is known for its address
  expect_hidden(join_two(id(), encode(relay.id())));
}

}  // namespace
}  // namespace hccl::bootstrap::test
