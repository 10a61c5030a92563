// SPDX-License-Identifier: Apache-2.0
// Tests how cgroup limits are read, from folders laid out like /proc and /sys. Also tests the list
// of HCCL_* variables.
#include "cgroup_limits.h"

#include "host_facts.h"
#include "sample_results.h"

#include <fstream>

namespace hccl_perf {
namespace {

class Cgroups : public TemporaryDirectory {
 protected:
  void write(const std::string& name, const std::string& content) const {
    const std::filesystem::path file = directory_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  [[nodiscard]] CgroupLimits limits() const { return cgroup_limits(directory_.string()); }
  [[nodiscard]] std::optional<std::uint64_t> memory_left() const {
    return cgroup_memory_left(directory_.string());
  }
};

TEST_F(Cgroups, LimitNothingWhenAbsent) {
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory_bytes);
  EXPECT_FALSE(memory_left());
}

TEST_F(Cgroups, Version2AppliesTheTightestAncestor) {
  write("proc/self/cgroup", "0::/job.slice/step\n");
  write("sys/fs/cgroup/job.slice/memory.max", "1000000\n");
  write("sys/fs/cgroup/job.slice/step/memory.max", "max\n");
  write("sys/fs/cgroup/job.slice/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/job.slice/step/cpu.max", "250000 100000\n");
  EXPECT_EQ(limits().memory_bytes, 1'000'000U);
  EXPECT_EQ(limits().cpus, 2.5);
}

TEST_F(Cgroups, OfAContainerAreReadAtTheMountRoot) {
  write("proc/self/cgroup", "0::/docker/0123\n");
  write("sys/fs/cgroup/memory.max", "4096\n");
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(limits().memory_bytes, 4096U);
  EXPECT_EQ(limits().cpus, 0.5);
}

TEST_F(Cgroups, Version1Applies) {
  write("proc/self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/\n1:cpuset:/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // means no limit
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "8192\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limits().memory_bytes, 8192U);
  EXPECT_EQ(limits().cpus, 3.0);
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(limits().cpus);
}

TEST_F(Cgroups, Version2LeavesTheLeastOfAllAncestors) {
  write("proc/self/cgroup", "0::/job.slice/step\n");
  write("sys/fs/cgroup/job.slice/memory.max", "1000000\n");
  write("sys/fs/cgroup/job.slice/memory.current", "700000\n");
  write("sys/fs/cgroup/job.slice/memory.stat", "anon 5\ninactive_file 100000\nactive_file 50000\n");
  write("sys/fs/cgroup/job.slice/step/memory.max", "900000\n");
  write("sys/fs/cgroup/job.slice/step/memory.current", "300000\n");
  EXPECT_EQ(memory_left(), 450'000U);
  write("sys/fs/cgroup/job.slice/step/memory.current", "950000\n");
  EXPECT_EQ(memory_left(), 0U);
}

TEST_F(Cgroups, Version1LeavesTheRestOfTheLimit) {
  write("proc/self/cgroup", "4:memory:/job\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "8192\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "5000\n");
  write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 10\ntotal_inactive_file 1000\n");
  EXPECT_EQ(memory_left(), 4192U);
}

TEST(HcclVariables, AreSortedAndWithoutSecrets) {
  const char* const environment[] = {"HCCL_TIMEOUT=5", "PATH=/bin", "HCCL_SECRET=s",
                                     "HCCL_ALGO=a=b",  "HCCL_",     nullptr};
  const std::vector<Variable> found = hccl_variables(environment);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name + ' ' + found[0].value, "HCCL_ALGO a=b");
  EXPECT_EQ(found[1].name + ' ' + found[1].value, "HCCL_SECRET (set)");
  EXPECT_EQ(found[2].name + ' ' + found[2].value, "HCCL_TIMEOUT 5");
}

}  // namespace
}  // namespace hccl_perf
