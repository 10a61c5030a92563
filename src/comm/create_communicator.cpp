// SPDX-License-Identifier: Apache-2.0
// Performs the rendezvous, joins the ranks of this node, chooses the back end, and watches the
// node's other processes.
#include "comm/create_communicator.h"

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rank_text.h"
#include "base/shared_memory.h"
#include "base/text.h"
#include "bootstrap/join.h"
#include "bootstrap/server_registry.h"
#include "comm/self_backend.h"
#include "multinode/multi_node_backend.h"
#include "network/network_backend.h"
#include "node/cpu_topology.h"
#include "node/node_backend.h"
#include "planner/topology.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace hccl::comm {
namespace {

constexpr int kMaxRanks = 4096;

// The properties of a rank that the other ranks need. Bootstrap forwards them as opaque bytes.
struct RankBlob {
  static constexpr std::uint32_t kLayout = 3;
  std::uint32_t layout = kLayout;
  std::uint32_t module = 0;
  std::uint64_t memory_bytes = 0;  // size of the rank's memory file
  node::CpuAllowance cpus;

  [[nodiscard]] static RankBlob of(device::Device& device) {
    RankBlob blob;
    blob.module = device.module();
    blob.memory_bytes = device.arena().view()->bytes();
    blob.cpus = node::CpuAllowance::of_this_thread();
    return blob;
  }
};

std::vector<std::byte> encode(const RankBlob& blob) {
  std::vector<std::byte> bytes(sizeof blob);
  std::memcpy(bytes.data(), &blob, sizeof blob);
  return bytes;
}

std::string text_of(const bootstrap::RankInfo& member) {
  return rank_text(member.rank, member.pid, member.host);
}

RankBlob decode(const bootstrap::RankInfo& member) {
  RankBlob blob;
  if (member.blob.size() == sizeof blob) std::memcpy(&blob, member.blob.data(), sizeof blob);
  if (member.blob.size() != sizeof blob || blob.layout != RankBlob::kLayout) {
    throw Error(hcclInvalidUsage,
                text(text_of(member),
                     " runs a different version of hccl; install the same version on all ranks"));
  }
  return blob;
}

// Checks the memory files of this node's ranks, and the file of the control block, which the lowest
// of these ranks has created. Throws Error if a file is not safe to map.
void inspect(const bootstrap::RankTable& table, int own_rank) {
  const std::string& own_node = table.members[static_cast<std::size_t>(own_rank)].node;
  int leader = -1;
  int ranks = 0;
  for (const bootstrap::RankInfo& member : table.members) {
    if (member.node != own_node) continue;
    if (ranks++ == 0) leader = member.rank;
    require_sealed(member.memory, decode(member).memory_bytes, text_of(member));
  }
  require_sealed(table.control, node::ControlBlock::bytes(ranks),
                 text_of(table.members[static_cast<std::size_t>(leader)]));
}

// Returns whether all calls must run by schedules, even on one node.
bool needs_schedules(const Config& settings) {
  return !settings.algorithm.empty() || !settings.transport.empty();
}

planner::Topology topology_of(const bootstrap::RankTable& table) {
  std::vector<std::string> identities;
  for (const bootstrap::RankInfo& member : table.members) identities.push_back(member.node);
  return planner::Topology(identities);
}

// Calls visit(member) for each rank on the node of `rank`, in the order of the table.
template <class Visit>
void for_each_rank_of_node(const bootstrap::RankTable& table, int rank, Visit visit) {
  const std::string& own_node = table.members[static_cast<std::size_t>(rank)].node;
  for (const bootstrap::RankInfo& member : table.members) {
    if (member.node == own_node) visit(member);
  }
}

// Returns this node's share of its host's caches: HCCL_NODE_ID can divide a host into nodes.
// Assumes that all of these nodes use the same processors: a rank knows the CPU allowances of its
// own node's ranks only.
std::uint64_t share_of_caches(const bootstrap::RankTable& table, int rank,
                              std::span<const node::CpuAllowance> allowances) {
  const std::string& own_host = table.members[static_cast<std::size_t>(rank)].host;
  std::set<std::string> nodes;
  for (const bootstrap::RankInfo& member : table.members) {
    if (member.host == own_host) nodes.insert(member.node);
  }
  return node::usable_cache_bytes(allowances) / nodes.size();
}

// Maps the memory that the ranks of this node share. Local ranks follow the order of the table.
std::unique_ptr<node::NodeSegment> join_node(const bootstrap::RankTable& table, int own_rank,
                                             device::Arena& arena,
                                             std::span<const node::CpuAllowance> allowances,
                                             bool uses_cross_memory) {
  std::vector<node::Peer> peers;
  int rank = 0;
  for_each_rank_of_node(table, own_rank, [&](const bootstrap::RankInfo& member) {
    if (member.rank == own_rank) rank = static_cast<int>(peers.size());
    peers.push_back({member.rank, device::ArenaView::open(member.memory), member.pid,
                     member.shares_pids, member.host});
  });
  const node::CoreCount cores = node::count_cores(allowances);
  if (!cores.exclusive && !cores.yields_to_ranks) WaitLadder::share_cores_with_other_groups();
  return std::make_unique<node::NodeSegment>(SharedSegment::map(table.control), std::move(peers),
                                             arena, rank, cores, uses_cross_memory);
}

void watch_peers(Communicator& communicator, const bootstrap::RankTable& table) {
  int local = 0;
  for_each_rank_of_node(table, communicator.rank(), [&](const bootstrap::RankInfo& member) {
    const int peer = local++;
    // The descriptor is invalid for ranks of this process.
    if (member.process.valid()) communicator.watch(member.process, peer);
  });
}

void log_summary(const bootstrap::RankTable& table, const planner::Topology& topology,
                 const Communicator& communicator, const node::CoreCount& cores,
                 const char* engine) {
  if (!log_enabled(LogLevel::info)) return;
  const auto foreign = std::ranges::count_if(table.members, [](const auto& member) {
    return member.process.valid() && !member.shares_pids;
  });
  const std::string namespaces =
      foreign == 0 ? "" : text(", ", foreign, " ranks in other pid namespaces");
  std::string hosts;
  for (const auto& ranks : topology.nodes()) {
    const auto& host = table.members[static_cast<std::size_t>(ranks.front())].host;
    hosts += text(hosts.empty() ? "" : ", ", host);
  }
  log(LogLevel::info, "comm", "rank ", communicator.rank(), " of ", communicator.size(), " on ",
      topology.nodes().size(), topology.is_one_node() ? " node (" : " nodes (", hosts, "), module ",
      communicator.device().module(), ", engine ", engine, ", ", cores.cores, " cores, waits by ",
      cores.ladder().name, ", memory shared by memfd", namespaces);
}

struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  const char* name;  // for the log
};

// Chooses the back end for the ranks of `table`. Unless this is NodeBackend, also chooses a
// transport to each rank, and takes the link to the server out of `table`. Throws Error.
ChosenBackend choose_backend(const Config& settings, int rank, bootstrap::RankTable& table,
                             const planner::Topology& topology,
                             std::span<const node::CpuAllowance> allowances,
                             std::unique_ptr<node::NodeSegment> segment,
                             std::unique_ptr<network::NetworkBackend> network) {
  const bool by_schedules = needs_schedules(settings);
  if (topology.is_one_node() && !by_schedules) {
    const node::EngineOptions options{node::usable_cache_bytes(allowances),
                                      settings.operation_timeout, settings.hang_report};
    return {std::make_unique<node::NodeBackend>(std::move(segment), options), "node"};
  }
  std::vector<std::string> texts;
  for (const bootstrap::RankInfo& member : table.members) texts.push_back(text_of(member));
  network->connect(table, topology, std::move(texts), std::move(segment));
  if (by_schedules || topology.ranks() == static_cast<int>(topology.nodes().size()))
    return {std::move(network), "schedules"};
  return {std::make_unique<multinode::MultiNodeBackend>(std::move(network),
                                                        share_of_caches(table, rank, allowances)),
          "two levels"};
}

std::shared_ptr<Communicator> join(const hcclUniqueId& id, int size, int rank,
                                   std::shared_ptr<device::Device> device) {
  const auto settings = config();
  device::Arena& arena = device->arena();
  auto network = std::make_unique<network::NetworkBackend>(settings, rank, size);
  const auto make_control = [](int ranks) {
    if (ranks <= node::kMaxRanks) return node::ControlBlock::create(ranks);
    throw Error(hcclInvalidArgument,
                text(ranks, " ranks on one node; start at most ", node::kMaxRanks, " on each"));
  };
  bootstrap::RankTable table = bootstrap::join(
      id, size, rank,
      {encode(RankBlob::of(*device)), arena.view()->file().duplicate(),
       [&](const Secret& secret) { return network->announce(secret); }, needs_schedules(*settings),
       [&](const bootstrap::RankTable& joined) { inspect(joined, rank); }},
      make_control, Deadline::after(settings->init_timeout));
  const planner::Topology topology = topology_of(table);
  std::vector<node::CpuAllowance> allowances;
  for_each_rank_of_node(table, rank, [&](const bootstrap::RankInfo& member) {
    allowances.push_back(decode(member).cpus);
  });
  auto segment = join_node(table, rank, arena, allowances, !settings->cma_disable);
  const node::CoreCount cores = segment->cores();
  ChosenBackend chosen = choose_backend(*settings, rank, table, topology, allowances,
                                        std::move(segment), std::move(network));
  auto communicator = std::make_shared<Communicator>(
      id, size, rank, std::move(device), std::move(chosen.backend),
      std::make_unique<OperationLog>(*settings, rank, topology.local_rank(rank) == 0));
  watch_peers(*communicator, table);
  log_summary(table, topology, *communicator, cores, chosen.name);
  return communicator;
}

}  // namespace

std::shared_ptr<Communicator> create_communicator(const hcclUniqueId& id, int size, int rank,
                                                  std::shared_ptr<device::Device> device) {
  if (size < 1 || size > kMaxRanks)
    throw Error(hcclInvalidArgument, text("nranks is ", size, "; pass 1 to ", kMaxRanks));
  if (rank < 0 || rank >= size) {
    throw Error(hcclInvalidArgument,
                text("rank is ", rank, ", but nranks is ", size, "; pass 0 to ", size - 1));
  }
  const hcclUniqueId resolved = bootstrap::resolve_unique_id(id);
  if (size > 1) return join(resolved, size, rank, std::move(device));
  auto backend = std::make_unique<SelfBackend>(device->arena());
  return std::make_shared<Communicator>(resolved, size, rank, std::move(device), std::move(backend),
                                        std::make_unique<OperationLog>(*config(), rank, true));
}

}  // namespace hccl::comm
