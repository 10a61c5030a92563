// SPDX-License-Identifier: Apache-2.0
// Calls mbind() directly, because libnuma only wraps the system call.
#include "base/numa.h"

#include "base/sysfs.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MPOL_LOCAL
#define MPOL_LOCAL 4
#endif

namespace hccl {
namespace {

constexpr int kMaxNumaNodes = CPU_SETSIZE;  // 1,024, the largest number that Linux supports
constexpr std::size_t kMaskBits = sizeof(unsigned long) * CHAR_BIT;
constexpr std::uint64_t kPieceBytes = 4ull << 30;

// Returns the processors on which any thread of this process may run.
cpu_set_t processors_of_process() {
  cpu_set_t all;
  CPU_ZERO(&all);
  std::error_code error;  // without procfs, the set remains empty
  std::filesystem::directory_iterator thread("/proc/self/task", error);
  for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    const int id = std::atoi(thread->path().filename().c_str());
    if (sched_getaffinity(id, sizeof allowed, &allowed) == 0) CPU_OR(&all, &all, &allowed);
  }
  return all;
}

// Returns whether the calling thread allocates pages on the node on which it runs (the default).
bool has_default_policy() noexcept {
  int mode = -1;
  if (syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) != 0) return false;
  return mode == MPOL_DEFAULT || mode == MPOL_LOCAL;
}

}  // namespace

std::optional<int> own_numa_node(const std::string& root) {
  const cpu_set_t nodes = parse_sysfs_list(read_sysfs(root + "/has_cpu"));
  if (CPU_COUNT(&nodes) < 2) return std::nullopt;
  const cpu_set_t own = processors_of_process();
  if (CPU_COUNT(&own) == 0) return std::nullopt;
  for (int node = 0; node < kMaxNumaNodes; ++node) {
    if (!CPU_ISSET(static_cast<std::size_t>(node), &nodes)) continue;
    const cpu_set_t processors =
        parse_sysfs_list(read_sysfs(text(root, "/node", node, "/cpulist")));
    cpu_set_t shared;
    CPU_AND(&shared, &processors, &own);
    if (CPU_EQUAL(&shared, &own)) return node;
  }
  return std::nullopt;
}

bool prefer_numa_node(const FileDescriptor& file, std::uint64_t bytes, int node) noexcept {
  if (!has_default_policy()) return false;
  std::array<unsigned long, kMaxNumaNodes / kMaskBits> mask{};
  const auto bit = static_cast<std::size_t>(node);
  mask[bit / kMaskBits] = 1ul << bit % kMaskBits;
  // The kernel stores the policy in the file, so the policy outlives these mappings and applies to
  // every process that maps the file. Mapping the file piece by piece saves address space.
  for (std::uint64_t offset = 0; offset < bytes; offset += kPieceBytes) {
    const std::uint64_t piece = std::min(kPieceBytes, bytes - offset);
    void* const mapped = mmap(nullptr, piece, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file.get(),
                              static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) return false;
    const bool set =
        syscall(SYS_mbind, mapped, piece, MPOL_PREFERRED, mask.data(), kMaxNumaNodes + 1, 0) == 0;
    munmap(mapped, piece);
    if (!set) return false;
  }
  return true;
}

}  // namespace hccl
