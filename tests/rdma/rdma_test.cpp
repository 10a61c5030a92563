// SPDX-License-Identifier: Apache-2.0
// Checks the library's and the device's counters.
#include "rdma_test.h"

#include "check.h"

#include <array>

#include <hccl_emulation.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hccl::test {
namespace {

constexpr int kBarrier = kMostSlots - 1;

}  // namespace

void limit_locked_memory(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  require(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "setrlimit");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  require(syscall(SYS_capget, &header, sets.data()) == 0, "capget");
  for (__u32* const set : {&sets[0].effective, &sets[0].permitted, &sets[0].inheritable})
    *set &= ~(1U << CAP_IPC_LOCK);
  require(syscall(SYS_capset, &header, sets.data()) == 0, "capset");
}

VerbsProof::VerbsProof(const World& world, Layout layout)
    : world_(world),
      layout_(std::move(layout)),
      host_(layout_.host_of(world.rank)),
      packets_before_(RdmaHosts::packets_sent(host_)) {}

void VerbsProof::report(const Group& group, std::uint64_t mtu) const {
  std::uint64_t bytes = 0;
  for (int peer = 0; peer < group.size(); ++peer) {
    if (layout_.host_of(peer) == host_) continue;
    hcclEmulationTraffic_t traffic{};
    succeed(hcclEmulationTraffic(group.handle, peer, &traffic));
    require_equal(std::string(traffic.transport), std::string("verbs"),
                  join("transport to rank ", peer));
    bytes += traffic.bytes_sent;
  }
  world_.board->barrier(kBarrier, world_.size);  // all bytes have arrived
  const std::uint64_t packets = RdmaHosts::packets_sent(host_) - packets_before_;
  require(packets * mtu >= bytes,
          join(bytes, " bytes sent, and ", packets, " packets by the device"));
  world_.report(std::to_string(bytes));
}

std::uint64_t VerbsProof::bytes_moved(const std::vector<RankOutcome>& outcomes) {
  std::uint64_t bytes = 0;
  for (const RankOutcome& outcome : outcomes)
    bytes += outcome.reports.empty() ? 0 : std::stoull(outcome.reports.back());
  return bytes;
}

}  // namespace hccl::test
