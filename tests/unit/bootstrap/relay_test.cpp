// SPDX-License-Identifier: Apache-2.0
// A relay changes a frame between a rank and the server. The rank must then fail.
#include "relay.h"

#include "loopback_test.h"

#include <map>

namespace hccl::bootstrap::test {
namespace {

class Relayed : public ServerTest {
 protected:
  // Joins rank 0 directly, and rank 1 through the relay.
  std::vector<Ending> join_through(const Relay& relay) {
    std::vector<Ending> endings(2);
    std::thread other([&] { endings[1] = try_join(encode(relay.id()), 2, 1); });
    endings[0] = try_join(id(), 2, 0);
    other.join();
    return endings;
  }
};

TEST_F(Relayed, UnchangedFramesLetRanksJoin) {
  const Relay relay(server(), std::nullopt);
  expect_all_joined(join_through(relay));
}

class ChangedFrame : public Relayed, public testing::WithParamInterface<FrameType> {};

class ChangedBeforeJoining : public ChangedFrame {};

TEST_P(ChangedBeforeJoining, PreventsJoining) {
  const Relay relay(server(), GetParam());
  const Ending ending = try_join(encode(relay.id()), 2, 1);
  const bool by_server = GetParam() == FrameType::welcome;
  EXPECT_EQ(ending.code, by_server ? hcclSocketError : hcclInvalidArgument);
  const std::string expected = by_server
                                   ? "does not know the secret of this communicator"
                                   : "belongs to a different server than the one that now listens";
  EXPECT_NE(ending.text.find(expected), std::string::npos) << ending.text;
  // If the welcome was changed, the server has accepted the rank, so the rank's departure ends the
  // rendezvous.
  if (!by_server) expect_all_joined(join_as_threads(id(), 2));
}

class ChangedAfterJoining : public ChangedFrame {};

TEST_P(ChangedAfterJoining, FailsRendezvousAndNamesRank) {
  const Relay relay(server(), GetParam());
  const std::vector<Ending> endings = join_through(relay);
  EXPECT_EQ(endings[1].code, hcclSocketError) << endings[1].text;
  EXPECT_NE(endings[1].text.find(kForgedFrame), std::string::npos) << endings[1].text;
  EXPECT_NE(endings[0].code, hcclSuccess);
  EXPECT_EQ(endings[0].text.find("rank 1 (pid "), 0U) << endings[0].text;
}

std::string name_of(const testing::TestParamInfo<FrameType>& type) {
  static const std::map<FrameType, std::string> kNames{
      {FrameType::opening, "Opening"}, {FrameType::greeting, "Greeting"},
      {FrameType::hello, "Hello"},     {FrameType::welcome, "Welcome"},
      {FrameType::table, "Table"},     {FrameType::ready, "Ready"}};
  return kNames.at(type.param);
}

INSTANTIATE_TEST_SUITE_P(Frames, ChangedBeforeJoining,
                         testing::Values(FrameType::opening, FrameType::greeting, FrameType::hello,
                                         FrameType::welcome),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Frames, ChangedAfterJoining,
                         testing::Values(FrameType::table, FrameType::ready), name_of);

}  // namespace
}  // namespace hccl::bootstrap::test
