// SPDX-License-Identifier: Apache-2.0
// What two ends tell each other of their queue pairs, over a connection that gives as little at a
// time as a connection may.
#include "verbs/introduction.h"

#include "base/file_descriptor.h"
#include "gids.h"
#include "ranks.h"

#include <functional>
#include <random>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::verbs {
namespace {

using hccl::test::test_seed;
using Outcome = Introduction::Outcome;

Facts facts() {
  return {.queue_pair = 0x00abcd,
          .first_packet = 0x654321,
          .gid = test::v4(10, 77, 0, 2),
          .mtu = 1024,
          .ring_address = 0x7f0123456000,
          .ring_key = 0x89abcdef,
          .notes_address = 0x7fabcdef8000,
          .notes_key = 0xfedcba98};
}

Facts with(const std::function<void(Facts&)>& change) {
  Facts changed = facts();
  change(changed);
  return changed;
}

TEST(Facts, Travel) {
  EXPECT_EQ(serialize(facts()).size(), kFactsBytes);
  EXPECT_EQ(parse_facts(serialize(facts())), facts());
  const Facts largest{0xffffff,    0xffffff, test::v6(0xfd, 0x00, 1), 4096, ~0ULL, ~0U,
                      ~0ULL - 100, ~0U - 1};
  EXPECT_EQ(parse_facts(serialize(largest)), largest);
}

TEST(Facts, NumbersHaveTheBoundsOfPackets) {
  EXPECT_TRUE(parse_facts(serialize(with([](Facts& f) { f.queue_pair = (1U << 24) - 1; }))));
  EXPECT_FALSE(parse_facts(serialize(with([](Facts& f) { f.queue_pair = 1U << 24; }))));
  EXPECT_FALSE(parse_facts(serialize(with([](Facts& f) { f.queue_pair = ~0U; }))));
  EXPECT_TRUE(parse_facts(serialize(with([](Facts& f) { f.first_packet = (1U << 24) - 1; }))));
  EXPECT_FALSE(parse_facts(serialize(with([](Facts& f) { f.first_packet = 1U << 24; }))));
  for (const std::uint32_t mtu : {256U, 1024U, 4096U})
    EXPECT_TRUE(parse_facts(serialize(with([=](Facts& f) { f.mtu = mtu; })))) << mtu;
  for (const std::uint32_t mtu : {0U, 255U, 4097U, ~0U})
    EXPECT_FALSE(parse_facts(serialize(with([=](Facts& f) { f.mtu = mtu; })))) << mtu;
}

TEST(Facts, CutOrExtendedTheyAreNone) {
  const Bytes whole = serialize(facts());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_facts(std::span(whole).first(size))) << size;
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(parse_facts(longer));
}

TEST(Facts, OfAnotherFormatTheyAreNone) {
  for (std::size_t at = 0; at < 4; ++at) {
    Bytes other = serialize(facts());
    other[at] ^= std::byte{2};
    EXPECT_FALSE(parse_facts(other)) << at;
  }
}

TEST(Facts, GarbageIsReadAsItIsOrNotAtAll) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "HCCL_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const Bytes known = serialize(facts());
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes = known;
    for (std::size_t left = 1 + random() % 6; left > 0; --left)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const auto read = parse_facts(bytes);
    EXPECT_TRUE(!read || serialize(*read) == bytes);
  }
}

class Introducing : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    near_ = FileDescriptor(ends[0]);
    far_ = FileDescriptor(ends[1]);
  }
  void say(std::span<const std::byte> bytes) const {
    ASSERT_EQ(write(far_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  // What has been said to the other end, so far.
  [[nodiscard]] Bytes hear() const {
    Bytes heard;
    std::array<std::byte, 4096> buffer{};
    ssize_t got = 0;
    while ((got = recv(far_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0)
      heard.insert(heard.end(), buffer.begin(), buffer.begin() + got);
    return heard;
  }
  [[nodiscard]] Outcome poll(std::size_t count = kFactsBytes) {
    return introduction_.poll(near_.get(), count);
  }
  [[nodiscard]] Bytes heard() const {
    return {introduction_.heard().begin(), introduction_.heard().end()};
  }

  FileDescriptor near_;
  FileDescriptor far_;
  Introduction introduction_;
};

TEST_F(Introducing, IsDoneWhenBothHaveSaidAll) {
  const Bytes own = serialize(facts());
  introduction_.send(own);
  EXPECT_TRUE(introduction_.has_unsent());
  EXPECT_EQ(poll(), Outcome::waiting);
  EXPECT_FALSE(introduction_.has_unsent());
  EXPECT_EQ(hear(), own);
  const Bytes theirs = serialize(with([](Facts& f) { f.queue_pair = 3; }));
  say(theirs);
  EXPECT_EQ(poll(), Outcome::done);
  EXPECT_EQ(heard(), theirs);
  EXPECT_EQ(poll(), Outcome::done) << "it stays so";
}

TEST_F(Introducing, WaitsForEachByte) {
  const Bytes theirs = serialize(facts());
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    EXPECT_EQ(poll(), Outcome::waiting) << i;
    EXPECT_EQ(introduction_.heard().size(), i);
    say(std::span(theirs).subspan(i, 1));
  }
  EXPECT_EQ(poll(), Outcome::done);
  EXPECT_EQ(parse_facts(introduction_.heard()), facts());
}

TEST_F(Introducing, LeavesWhatComesNextForTheNextStep) {
  Bytes said = serialize(facts());
  said.push_back(std::byte{0x52});
  say(said);
  EXPECT_EQ(poll(), Outcome::done);
  EXPECT_EQ(introduction_.heard().size(), kFactsBytes);
  introduction_.forget_heard();
  EXPECT_TRUE(introduction_.heard().empty());
  EXPECT_EQ(poll(1), Outcome::done);
  EXPECT_EQ(heard(), Bytes{std::byte{0x52}});
  introduction_.forget_heard();
  EXPECT_EQ(poll(1), Outcome::waiting);
}

TEST_F(Introducing, HearsOfAnEndThatComesEarly) {
  const Bytes all = serialize(facts());
  say(std::span(all).first(kFactsBytes - 1));
  far_.reset();
  EXPECT_EQ(poll(), Outcome::closed);
}

TEST_F(Introducing, HearsOfAnEndBeforeAnythingIsSaid) {
  introduction_.send(serialize(facts()));
  far_.reset();
  EXPECT_EQ(poll(), Outcome::closed) << "and no signal ends the process";
}

TEST_F(Introducing, TakesTheLastWordsOfAnEndThatHasGone) {
  EXPECT_EQ(poll(), Outcome::waiting);
  say(serialize(facts()));
  far_.reset();
  EXPECT_EQ(poll(), Outcome::done);
  introduction_.forget_heard();
  EXPECT_EQ(poll(1), Outcome::closed);
}

TEST_F(Introducing, SendsWhatIsLeftWhenTheBufferHasRoomAgain) {
  const int small = 4096;
  ASSERT_EQ(setsockopt(near_.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
  Bytes own(std::size_t{1} << 20);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::byte>(i * 31 >> 3);
  introduction_.send(own);
  say(serialize(facts()));
  EXPECT_EQ(poll(), Outcome::waiting) << "what has come is heard, but not all is said";
  EXPECT_TRUE(introduction_.has_unsent());
  EXPECT_EQ(introduction_.heard().size(), kFactsBytes);
  Bytes got;
  while (got.size() < own.size()) {
    const Bytes more = hear();
    ASSERT_FALSE(more.empty()) << "all that is sent arrives at once here";
    got.insert(got.end(), more.begin(), more.end());
    static_cast<void>(poll());
  }
  EXPECT_EQ(got, own);
  EXPECT_EQ(poll(), Outcome::done);
  EXPECT_EQ(parse_facts(introduction_.heard()), facts());
}

}  // namespace
}  // namespace hccl::verbs
