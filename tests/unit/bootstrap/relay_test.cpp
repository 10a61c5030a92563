// SPDX-License-Identifier: Apache-2.0
// A relay tampers with a TLS record between a rank and the server. The rank must then fail.
#include "relay.h"

#include "loopback_test.h"

#include <chrono>

namespace hccl::bootstrap::test {
namespace {

class Relayed : public ServerTest {
 protected:
  // Joins rank 0 directly, and rank 1 through the relay.
  std::vector<Ending> join_through(const Relay& relay,
                                   std::chrono::milliseconds limit = kPatience) {
    std::vector<Ending> endings(2);
    std::thread other([&] { endings[1] = try_join(encode(relay.id()), 2, 1, limit); });
    endings[0] = try_join(id(), 2, 0, limit);
    other.join();
    return endings;
  }
};

TEST_F(Relayed, UnchangedFramesLetRanksJoin) {
  const Relay relay(server(), std::nullopt);
  expect_all_joined(join_through(relay));
}

// The records of a rank are 0: the first message of the handshake, 1: the end of the handshake, 2:
// hello, 3: ready. Those of the server are 0 to 2: its part of the handshake, 3: welcome, 4: table,
// 5: go.
class Tampered : public Relayed, public testing::WithParamInterface<Tampering> {};

class TamperedBeforeJoining : public Tampered {};

TEST_P(TamperedBeforeJoining, PreventsJoining) {
  const Relay relay(server(), GetParam());
  const Ending ending = try_join(encode(relay.id()), 2, 1, std::chrono::seconds(1));
  EXPECT_NE(ending.code, hcclSuccess);
  EXPECT_NE(ending.text, "");
  expect_all_joined(join_as_threads(id(), 2));
}

class TamperedAfterJoining : public Tampered {};

// If the last record is dropped or held back, the ranks time out. If it is repeated, they may have
// joined before the copy arrives, which then ends the connection.
TEST_P(TamperedAfterJoining, FailsOnAllRanksOrHasNoEffect) {
  const Relay relay(server(), GetParam());
  const std::vector<Ending> endings = join_through(relay, std::chrono::seconds(3));
  if (GetParam().kind == Tampering::Kind::repeat && endings[0].code == hcclSuccess) return;
  EXPECT_NE(endings[0].code, hcclSuccess);
  EXPECT_NE(endings[0].text.find("rank"), std::string::npos) << endings[0].text;
  EXPECT_NE(endings[1].code, hcclSuccess);
  EXPECT_NE(endings[1].text, "");
}

class ChangedAfterJoining : public Tampered {};

TEST_P(ChangedAfterJoining, FailsRendezvousAndNamesRank) {
  const Relay relay(server(), GetParam());
  const std::vector<Ending> endings = join_through(relay);
  EXPECT_EQ(endings[1].code, hcclSocketError) << endings[1].text;
  EXPECT_NE(endings[1].text.find(kForgedRecord), std::string::npos) << endings[1].text;
  EXPECT_NE(endings[0].code, hcclSuccess);
  EXPECT_EQ(endings[0].text.find("rank 1 (pid "), 0U) << endings[0].text;
}

std::string name_of(const testing::TestParamInfo<Tampering>& tampering) {
  return tampering.param.name();
}

std::vector<Tampering> every_kind(bool of_server, int first, int last) {
  std::vector<Tampering> all;
  for (int record = first; record <= last; ++record) {
    for (int kind = 0; kind < 5; ++kind)
      all.push_back({of_server, record, static_cast<Tampering::Kind>(kind)});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(OfHandshake, TamperedBeforeJoining,
                         testing::ValuesIn(every_kind(false, 0, 1)), name_of);
INSTANTIATE_TEST_SUITE_P(OfHello, TamperedBeforeJoining,
                         testing::Values(Tampering{false, 2, Tampering::Kind::change},
                                         Tampering{false, 2, Tampering::Kind::drop},
                                         Tampering{false, 2, Tampering::Kind::swap},
                                         Tampering{false, 2, Tampering::Kind::cut}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OfHello, TamperedAfterJoining,
                         testing::Values(Tampering{false, 2, Tampering::Kind::repeat}), name_of);
INSTANTIATE_TEST_SUITE_P(OfServer, TamperedBeforeJoining, testing::ValuesIn(every_kind(true, 0, 2)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OfRank, TamperedAfterJoining, testing::ValuesIn(every_kind(false, 3, 3)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OfServer, TamperedAfterJoining, testing::ValuesIn(every_kind(true, 3, 4)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(All, ChangedAfterJoining,
                         testing::Values(Tampering{false, 3}, Tampering{true, 3},
                                         Tampering{true, 4}),
                         name_of);

}  // namespace
}  // namespace hccl::bootstrap::test
