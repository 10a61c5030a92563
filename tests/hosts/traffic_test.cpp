// SPDX-License-Identifier: Apache-2.0
// Tests that a forced algorithm and transport are used. Reads the library's counters and the byte
// counter of a private network.
#include "host_test.h"
#include "rank_test.h"
#include "session.h"

#include <fstream>
#include <ostream>
#include <sstream>

#include <hccl_emulation.h>

namespace hccl::test {
namespace {

struct TrafficCase {
  const char* algorithm;
  const char* transport;
};

void PrintTo(const TrafficCase& value, std::ostream* out) {
  *out << value.algorithm << " over " << value.transport;
}

constexpr int kRanks = 4;
constexpr std::uint64_t kBytes = 4 << 20;
constexpr int kCalls = 5;

// Returns the bytes sent over the loopback interface of this process's network namespace.
std::uint64_t loopback_bytes() {
  std::ifstream devices("/proc/net/dev");
  std::string line;
  while (std::getline(devices, line)) {
    const std::size_t name = line.find("lo:");
    if (name == std::string::npos) continue;
    std::istringstream numbers(line.substr(name + 3));
    std::uint64_t number = 0;
    for (int column = 0; column < 9; ++column) numbers >> number;
    return number;
  }
  throw Failure("no loopback interface");
}

hcclEmulationTraffic_t traffic_of(const Group& group, int peer) {
  hcclEmulationTraffic_t traffic{};
  succeed(hcclEmulationTraffic(group.handle, peer, &traffic));
  return traffic;
}

// To agree on a large call, each of the four ranks sends two messages, each of a header and one
// byte.
constexpr std::uint64_t kHeader = 32;
constexpr std::uint64_t kAgreement = 2 * (kHeader + 1);

// Returns the number of ranks with which this rank exchanges more bytes than the agreement messages
// contain.
int peers_of(const Group& group) {
  int peers = 0;
  for (int peer = 0; peer < group.size(); ++peer) {
    if (peer == group.rank) continue;
    const hcclEmulationTraffic_t traffic = traffic_of(group, peer);
    peers += traffic.bytes_sent + traffic.bytes_received > std::uint64_t{2} * kCalls * kAgreement
                 ? 1
                 : 0;
  }
  return peers;
}

void check_counters(const Group& group, const TrafficCase& of) {
  const hcclEmulationTraffic_t all = traffic_of(group, -1);
  require_equal(std::string(all.algorithm), std::string(of.algorithm), "algorithm");
  require_equal(std::string(all.transport), std::string(of.transport), "transport");
  const bool ring = std::string(of.algorithm) == "ring";
  constexpr std::uint64_t kRing =
      std::uint64_t{2} * (kRanks - 1) * kBytes / kRanks + kHeader + kAgreement;
  if (ring) require_equal(all.bytes_sent, kCalls * kRing, "bytes sent");
  require(peers_of(group) <= (ring ? 2 : 2 * 3), "too many peers");
  int sent_to = 0;
  for (int peer = 0; peer < group.size(); ++peer)
    sent_to += peer != group.rank && traffic_of(group, peer).bytes_sent > kCalls * kAgreement;
  if (ring) require_equal(sent_to, 1, "ranks sent to");
}

class ForcedAlgorithm : public Hosts, public testing::WithParamInterface<TrafficCase> {};

TEST_P(ForcedAlgorithm, IsUsed) {
  const TrafficCase of = GetParam();
  const HostNetwork network(1);
  const RankOptions options{
      .environment = {{"HCCL_ALGO", of.algorithm}, {"HCCL_TRANSPORT", of.transport}},
      .comm_id = true};
  const auto reduce = [&](RANK_PARAMETERS) {
    const DeviceMemory memory(session.device(), kBytes);
    void* const data = memory.pointer();
    world.board->barrier(0, world.size);
    const std::uint64_t before = loopback_bytes();
    world.board->barrier(1, world.size);
    for (int call = 0; call < kCalls; ++call) {
      succeed(hcclAllReduce(data, data, kBytes / 4, hcclFloat32, hcclSum, group.handle, stream));
      succeed(synStreamSynchronize(stream));
    }
    world.board->barrier(2, world.size);
    const std::uint64_t grown = loopback_bytes() - before;
    check_counters(group, of);
    // The data that all ranks send, without the headers of messages and packets.
    constexpr std::uint64_t kData = std::uint64_t{kCalls} * 2 * (kRanks - 1) * kBytes;
    if (std::string(of.transport) == "tcp") {
      require(grown >= kData && grown < kData + kData / 10, join("lo grew by ", grown));
    } else {
      require(grown < kBytes / 10, join("lo grew by ", grown));
    }
  };
  const auto enter = [&](const World&) { network.enter(0); };
  EXPECT_EQ(failures(run_ranks(kRanks, in_session(reduce, enter), options)), "");
}

INSTANTIATE_TEST_SUITE_P(Choices, ForcedAlgorithm,
                         testing::Values(TrafficCase{"ring", "tcp"}, TrafficCase{"ring", "shm"},
                                         TrafficCase{"tree", "tcp"}, TrafficCase{"tree", "shm"}));

}  // namespace
}  // namespace hccl::test
