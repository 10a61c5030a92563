// SPDX-License-Identifier: Apache-2.0
// Helpers for tests whose ranks run on hosts with one RDMA device each, and a check that the ranks
// use the devices.
#pragma once

#include "ranks.h"
#include "rdma_hosts.h"
#include "session.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace hccl::test {

class OnRdmaHosts : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = RdmaHosts::why_not(4);
    if (!why_not.empty()) GTEST_SKIP() << "needs rdma hosts: " << why_not;
  }
};

// The host of each rank: one letter per rank.
struct Layout {
  std::string letters;

  [[nodiscard]] int ranks() const { return static_cast<int>(letters.size()); }
  [[nodiscard]] int host_of(int rank) const {
    return letters.at(static_cast<std::size_t>(rank)) - 'a';
  }
};

// Returns options in which HCCL_COMM_ID names the host of rank 0 and each rank chooses its own
// interfaces.
inline RankOptions on_hosts_of(const Layout& layout) {
  return {.environment = {{"HCCL_COMM_ID", RdmaHosts::address(layout.host_of(0)) + ":29400"},
                          {"HCCL_SECRET", "rdma"},
                          {"HCCL_SOCKET_IFNAME", ""}},
          .seconds = 100};
}

[[nodiscard]] inline std::string random_seed_text() {
  return "HCCL_TEST_SEED=" + std::to_string(test_seed());
}

// Moves the rank to `host`. Must precede the rank's first call into the library.
inline void move_to(int host) {
  unsetenv("HCCL_NODE_ID");
  RdmaHosts::enter(host);
}

// Limits locked memory to `bytes`, as in a container. Drops CAP_IPC_LOCK, with which root may
// exceed the limit.
void limit_locked_memory(rlim_t bytes);

// Proves that a communicator's ranks send to other hosts through their RDMA devices.
class VerbsProof {
 public:
  // Reads the packet counter of the device. Each rank calls this on its host before it joins.
  VerbsProof(const World& world, Layout layout);
  // Reports the bytes that this rank has sent to other hosts. Throws Failure if the transport to a
  // rank on another host is not verbs, or unless the device has sent enough packets for these
  // bytes, with `mtu` bytes of payload in each. Each rank calls this after its other calls. Blocks
  // until all ranks have called this.
  void report(const Group& group, std::uint64_t mtu = 4096) const;
  // Returns the sum of the bytes that all ranks reported. The test program calls this. report()
  // must have made the last report of each rank.
  [[nodiscard]] static std::uint64_t bytes_moved(const std::vector<RankOutcome>& outcomes);

 private:
  const World& world_;
  Layout layout_;
  int host_;
  std::uint64_t packets_before_;
};

// Runs `body` on two ranks on two hosts, in one communicator with a stream, and requires that the
// ranks use the devices.
template <class Body>
void run_pair(Body body, int seconds = 100) {
  const RdmaHosts hosts;
  const Layout layout{"ab"};
  RankOptions options = on_hosts_of(layout);
  options.seconds = seconds;
  const auto outcomes = run_ranks(
      layout.ranks(),
      [&](World& world) {
        move_to(layout.host_of(world.rank));
        const VerbsProof proof(world, layout);
        Session session(world);
        const Group group = session.join_all();
        body(session, group, session.make_stream());
        proof.report(group);
        session.finish();
      },
      options);
  EXPECT_EQ(failures(outcomes), "");
  EXPECT_GT(VerbsProof::bytes_moved(outcomes), 0U);
}

}  // namespace hccl::test
