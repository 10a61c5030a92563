// SPDX-License-Identifier: Apache-2.0
#include "base/numa.h"

#include "base/shared_memory.h"
#include "base/sysfs.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hccl {
namespace {

// A temporary folder that describes NUMA nodes as sysfs does. The destructor removes it.
class Nodes {
 public:
  Nodes() {
    std::string name = testing::TempDir() + "numa.XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  ~Nodes() { std::filesystem::remove_all(root_); }
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  void add(int node, const std::string& processors) {
    const auto folder = root_ / ("node" + std::to_string(node));
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "cpulist") << processors << '\n';
    with_processors_ += (with_processors_.empty() ? "" : ",") + std::to_string(node);
    std::ofstream(root_ / "has_cpu") << with_processors_ << '\n';
  }
  [[nodiscard]] std::string root() const { return root_; }

 private:
  std::filesystem::path root_;
  std::string with_processors_;
};

TEST(NumaNode, IsTheOneThatHasAllProcessorsOfTheProcess) {
  Nodes nodes;
  nodes.add(0, "1000-1003");
  nodes.add(3, "1004,0-999");
  EXPECT_EQ(own_numa_node(nodes.root()), 3);
}

// The affinities of all threads count, even if the calling thread may run on only one processor.
TEST(NumaNode, IsUnknownIfSeveralHaveProcessorsOfTheProcess) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "needs several cores: this process may use one";
  Nodes nodes;
  int node = 0;
  cpu_set_t last;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    nodes.add(node++, std::to_string(cpu));
    CPU_ZERO(&last);
    CPU_SET(cpu, &last);
  }
  std::thread([&] {
    ASSERT_EQ(sched_setaffinity(0, sizeof last, &last), 0);
    EXPECT_EQ(own_numa_node(nodes.root()), std::nullopt);
  }).join();
}

TEST(NumaNode, IsUnknownOnAMachineWithOneOrWithoutSysfs) {
  Nodes nodes;
  nodes.add(0, "0-1023");
  EXPECT_EQ(own_numa_node(nodes.root()), std::nullopt);
  EXPECT_EQ(own_numa_node("/nonexistent"), std::nullopt);
}

// Returns the NUMA node of the page at `address`, or a negative number if the system does not name
// it.
int node_of_page(void* address) {
  int node = -1;
  if (syscall(SYS_move_pages, 0, 1ul, &address, nullptr, &node, 0) != 0) return -1;
  return node;
}

// Maps a new memory file, makes it prefer `node`, and only then writes its first page. Returns the
// page's NUMA node, or a negative number if a call fails.
int node_of_first_page(int node) {
  constexpr std::size_t kMemoryBytes = 1u << 20;
  const FileDescriptor file = create_memory_file("hccl-test", kMemoryBytes);
  void* const mapped =
      mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED || !prefer_numa_node(file, kMemoryBytes, node)) return -1;
  static_cast<std::byte*>(mapped)[0] = std::byte{1};
  const int found = node_of_page(mapped);
  munmap(mapped, kMemoryBytes);
  return found;
}

TEST(NumaNode, IsPreferredByPagesThatAnyThreadWritesFirst) {
  const cpu_set_t nodes = parse_sysfs_list(read_sysfs("/sys/devices/system/node/has_memory"));
  for (int node = 0; node < CPU_SETSIZE; ++node) {
    if (!CPU_ISSET(static_cast<std::size_t>(node), &nodes)) continue;
    const int found = node_of_first_page(node);
    if (found < 0) GTEST_SKIP() << "needs mbind and move_pages: the system refuses them";
    EXPECT_EQ(found, node);
  }
}

// The thread has a memory policy, as under `numactl --interleave`.
TEST(NumaNode, IsNotPreferredOverThePolicyOfTheThread) {
  std::thread([] {
    constexpr std::size_t kMemoryBytes = 1u << 20;
    const FileDescriptor file = create_memory_file("hccl-test", kMemoryBytes);
    const unsigned long node_0 = 1;
    if (syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &node_0, 2ul) != 0)
      GTEST_SKIP() << "needs mbind and move_pages: the system refuses memory policies";
    EXPECT_FALSE(prefer_numa_node(file, kMemoryBytes, 0));
  }).join();
}

}  // namespace
}  // namespace hccl
