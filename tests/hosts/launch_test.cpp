// SPDX-License-Identifier: Apache-2.0
// Tests programs whose ranks mpirun starts on several hosts. The ranks find each other only through
// mpirun.
#include "host_test.h"
#include "text.h"
#include "trainer_runs.h"

#include <fstream>

#include <sys/stat.h>

namespace ddp_trainer {
namespace {

using hccl::test::HostNetwork;
using hccl_perf::table_rows;

// Runs programs under mpirun on several hosts. In place of ssh, mpirun uses a script that enters
// the host's network namespace.
class UnderMpirun : public hccl::test::Hosts {
 protected:
  void SetUp() override {
    Hosts::SetUp();
    if (IsSkipped()) return;
    if (!hccl_perf::installed("mpirun")) GTEST_SKIP() << "needs mpirun (package openmpi-bin)";
  }

  [[nodiscard]] Outcome run_on_hosts(int hosts, int each, const Words& program) const {
    const HostNetwork network(hosts);
    const std::string agent = folder_.file("agent");
    std::ofstream(agent) << "#!/bin/sh\nhost=$1\nshift\nname=" << network.name(0)
                         << "\nexec ip netns exec ${name%0}$((${host##*.} - 1)) sh -c \"$*\"\n";
    chmod(agent.c_str(), 0755);
    std::ofstream list(folder_.file("hosts"));
    for (int host = 0; host < hosts; ++host)
      list << HostNetwork::address(host) << " slots=" << each << '\n';
    list.close();
    Words words(hccl_perf::text("ip netns exec ", network.name(0),
                                " mpirun --allow-run-as-root --mca plm_rsh_agent ", agent,
                                " --hostfile ", folder_.file("hosts"), " --bind-to none -np ",
                                std::to_string(hosts * each)));
    words.append(program);
    return Program(words).wait();
  }

  const Folder folder_;
};

TEST_F(UnderMpirun, PerfRunsAndReportsItsSetup) {
  const Outcome outcome = run_on_hosts(
      2, 4, {hccl_perf::program_path(), "all_reduce", "-b", "8", "-e", "1M", "-f", "8", "-n", "3"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = table_rows(outcome.out);
  ASSERT_EQ(rows.size(), 6U) << outcome.out << outcome.err;
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 15U) << outcome.out;
    EXPECT_EQ(row[8], "0");
    EXPECT_EQ(row[12], "0");
    EXPECT_EQ(row[14], "shm+tcp");
  }
}

TEST_F(UnderMpirun, TrainingMatchesASingleProcess) {
  const Words few{"--epochs", "3"};
  Words words = command(few);
  for (const std::string& more : Words{"--json", folder_.file("run.json")}) words.push_back(more);
  const Outcome outcome = run_on_hosts(2, 4, words);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(curve_in(folder_.file("run.json")), train(few));
}

}  // namespace
}  // namespace ddp_trainer
