// SPDX-License-Identifier: Apache-2.0
// Tests whose ranks are on hosts with an RDMA device each, and the proof that it was used.
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

// Which host each rank is on: a letter for each.
struct Layout {
  std::string letters;

  [[nodiscard]] int ranks() const { return static_cast<int>(letters.size()); }
  [[nodiscard]] int host_of(int rank) const {
    return letters.at(static_cast<std::size_t>(rank)) - 'a';
  }
};

// Ranks find each other at the host of rank 0, and choose their interfaces themselves.
inline RankOptions on_hosts_of(const Layout& layout) {
  return {.environment = {{"HCCL_COMM_ID", RdmaHosts::address(layout.host_of(0)) + ":29400"},
                          {"HCCL_SECRET", "rdma"},
                          {"HCCL_SOCKET_IFNAME", ""}},
          .seconds = 100};
}

[[nodiscard]] inline std::string random_seed_text() {
  return "HCCL_TEST_SEED=" + std::to_string(test_seed());
}

// To be called first by a rank.
inline void move_to(int host) {
  unsetenv("HCCL_NODE_ID");
  RdmaHosts::enter(host);
}

// As in a container that was given no more. Root may lock as it likes, so that goes, too.
void limit_locked_memory(rlim_t bytes);

// That what a communicator's ranks send to other hosts goes through their RDMA devices.
class VerbsProof {
 public:
  // By each rank on its host, before it joins.
  VerbsProof(const World& world, Layout layout);
  // By each rank when all its calls are done: throws if they went another way, reports what they
  // moved. `mtu`: that no packet's payload exceeds.
  void report(const Group& group, std::uint64_t mtu = 4096) const;
  // By the test program, of what all have reported.
  [[nodiscard]] static std::uint64_t bytes_moved(const std::vector<RankOutcome>& outcomes);

 private:
  const World& world_;
  Layout layout_;
  int host_;
  std::uint64_t packets_before_;
};

// Two ranks on two hosts, in one communicator and with a stream: each does `body`, which goes
// through the devices.
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
