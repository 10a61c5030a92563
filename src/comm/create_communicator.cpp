// SPDX-License-Identifier: Apache-2.0
// Performs the rendezvous, joins the ranks of this node, chooses the back end, and watches the
// node's other processes.
#include "comm/create_communicator.h"

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/shared_memory.h"
#include "base/text.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/join.h"
#include "bootstrap/server_registry.h"
#include "comm/rank_blob.h"
#include "comm/self_backend.h"
#include "multinode/multi_node_backend.h"
#include "network/network_backend.h"
#include "node/cpu_topology.h"
#include "node/node_backend.h"
#include "planner/topology.h"

#include <algorithm>
#include <memory>
#include <new>
#include <set>
#include <utility>
#include <vector>

namespace hccl::comm {
namespace {

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
template <class Table, class Visit>
void for_each_rank_of_node(Table& table, int rank, Visit visit) {
  const std::string& own_node = table.members[static_cast<std::size_t>(rank)].node;
  for (auto& member : table.members) {
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
  return node::usable_cache_bytes(allowances, nodes.size());
}

// Staging buffers are slow if the ranks' caches are far apart, because each line then crosses
// between the caches twice.
node::DirectReads direct_reads(const Config& settings,
                               std::span<const node::CpuAllowance> allowances) {
  if (settings.cma_disable) return node::DirectReads::never;
  return node::share_last_level_cache(allowances) ? node::DirectReads::if_faster
                                                  : node::DirectReads::always;
}

// Maps the memory that the ranks of this node share. Local ranks follow the order of the table.
std::shared_ptr<node::NodeSegment> join_node(const bootstrap::RankTable& table, int own_rank,
                                             device::Arena& arena,
                                             std::span<const node::CpuAllowance> allowances,
                                             node::DirectReads reads) {
  std::vector<node::Peer> peers;
  int rank = 0;
  for_each_rank_of_node(table, own_rank, [&](const bootstrap::RankInfo& member) {
    if (member.rank == own_rank) rank = static_cast<int>(peers.size());
    peers.push_back({member.rank, device::ArenaView::open(member.memory), member.pid,
                     member.shares_pids, member.host});
  });
  const node::CoreCount cores = node::count_cores(allowances);
  if (!cores.exclusive && !cores.yields_to_ranks) WaitLadder::share_cores_with_other_groups();
  return std::make_shared<node::NodeSegment>(SharedSegment::map(table.control), std::move(peers),
                                             arena, rank, cores, reads);
}

// Takes the descriptors of this node's processes out of `table`.
void watch_peers(Communicator& communicator, bootstrap::RankTable& table) {
  int local = 0;
  for_each_rank_of_node(table, communicator.rank(), [&](bootstrap::RankInfo& member) {
    const int peer = local++;
    // The descriptor is invalid for ranks of this process.
    if (member.process.valid()) communicator.watch(std::move(member.process), peer);
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
  const char* name = "";  // for the log
};

// Chooses the back end for the ranks of `table`. Unless it chooses NodeBackend, takes `network`,
// chooses a transport to each rank, and takes the link to the server out of `table`. Throws Error.
ChosenBackend choose_backend(const Config& settings, int rank, bootstrap::RankTable& table,
                             const planner::Topology& topology,
                             std::span<const node::CpuAllowance> allowances,
                             std::shared_ptr<node::NodeSegment> segment,
                             std::unique_ptr<network::NetworkBackend>& network) {
  const bool by_schedules = needs_schedules(settings);
  if (topology.is_one_node() && !by_schedules) {
    const node::EngineOptions options{node::usable_cache_bytes(allowances),
                                      settings.operation_timeout, settings.hang_report};
    return {std::make_unique<node::NodeBackend>(std::move(segment), options), "node"};
  }
  std::vector<std::string> texts;
  for (const bootstrap::RankInfo& member : table.members) texts.push_back(member_text(member));
  network->connect(table, topology, std::move(texts), std::move(segment));
  if (by_schedules || topology.ranks() == static_cast<int>(topology.nodes().size()))
    return {std::move(network), "schedules"};
  return {std::make_unique<multinode::MultiNodeBackend>(std::move(network),
                                                        share_of_caches(table, rank, allowances)),
          "two levels"};
}

// Reports to the other ranks that this rank has failed after all ranks had joined. Otherwise they
// would wait for it in their first call. The ranks of this node find the fault in the segment. The
// others receive it over the link to the server, which `backend` has unless `table` still has it.
void report_failure(node::NodeSegment& segment, bootstrap::RankTable& table, Backend* backend,
                    hcclResult_t code, const char* what) {
  const auto why = [&] {
    return text(segment.own_text(), " failed during initialisation: ", what);
  };
  segment.fault().raise_with(code, why);
  if (backend != nullptr) backend->fail(code, what);
  if (!table.link.connection.socket.valid()) return;
  bootstrap::ControlLink link(std::move(table.link),
                              {.fault = [](hcclResult_t, const std::string&) {}});
  link.raise(code, why);
}

// A rank that has joined, but has no communicator yet.
struct JoinedRank {
  bootstrap::RankTable table;
  std::vector<node::CpuAllowance> allowances;  // of the ranks of this node
  std::shared_ptr<node::NodeSegment> segment;
};

// Performs the rendezvous and enters the node. If this throws, the rendezvous reports the error to
// the other ranks.
JoinedRank join(const hcclUniqueId& id, int size, int rank, device::Device& device,
                const Config& settings, network::NetworkBackend& network) {
  device::Arena& arena = device.arena();
  JoinedRank joined;
  const auto make_control = [](int ranks) {
    if (ranks <= node::kMaxRanks) return node::ControlBlock::create(ranks);
    throw Error(hcclInvalidArgument, text(ranks, " ranks are on one node; start at most ",
                                          node::kMaxRanks, " on each node"));
  };
  const auto enter_node = [&](const bootstrap::RankTable& table) {
    inspect(table, rank);
    for_each_rank_of_node(table, rank, [&](const bootstrap::RankInfo& member) {
      joined.allowances.push_back(decode(member).cpus);
    });
    joined.segment =
        join_node(table, rank, arena, joined.allowances, direct_reads(settings, joined.allowances));
    bootstrap::ControlThread::instance().start();  // for the watches of this node's processes
  };
  joined.table = bootstrap::join(
      id, size, rank,
      {encode(RankBlob::of(device, settings)), arena.view()->file().duplicate(),
       [&](const bootstrap::CommunicatorSecret& secret) { return network.announce(secret); },
       needs_schedules(settings), enter_node},
      make_control, Deadline::after(settings.init_timeout));
  return joined;
}

std::shared_ptr<Communicator> join_and_create(const hcclUniqueId& id, int size, int rank,
                                              std::shared_ptr<device::Device> device) {
  const auto settings = config();
  auto network = std::make_unique<network::NetworkBackend>(settings, rank, size);
  JoinedRank joined = join(id, size, rank, *device, *settings, *network);
  ChosenBackend chosen;
  Backend* backend = nullptr;
  std::shared_ptr<Communicator> communicator;
  const auto report = [&](hcclResult_t code, const char* what) {
    report_failure(*joined.segment, joined.table, backend, code, what);
    if (communicator) communicator->leave();
  };
  try {
    const planner::Topology topology = topology_of(joined.table);
    chosen = choose_backend(*settings, rank, joined.table, topology, joined.allowances,
                            joined.segment, network);
    backend = chosen.backend.get();
    communicator = std::make_shared<Communicator>(
        id, size, rank, std::move(device), std::move(chosen.backend),
        std::make_unique<OperationLog>(*settings, rank, topology.local_rank(rank) == 0));
    log_summary(joined.table, topology, *communicator, joined.segment->cores(), chosen.name);
    watch_peers(*communicator, joined.table);
  } catch (const Error& error) {
    report(error.code(), error.what());
    throw;
  } catch (const std::bad_alloc&) {
    report(hcclOutOfMemory, "out of host memory; free memory or raise the process's memory limit");
    throw;
  }
  return communicator;
}

}  // namespace

std::shared_ptr<Communicator> create_communicator(const hcclUniqueId& id, int size, int rank,
                                                  std::shared_ptr<device::Device> device) {
  if (size < 1 || size > bootstrap::kMostRanks) {
    throw Error(hcclInvalidArgument,
                text("nranks is ", size, "; pass 1 to ", bootstrap::kMostRanks));
  }
  if (rank < 0 || rank >= size) {
    throw Error(hcclInvalidArgument,
                text("rank is ", rank, ", but nranks is ", size, "; pass 0 to ", size - 1));
  }
  const hcclUniqueId resolved = bootstrap::resolve_unique_id(id);
  if (size > 1) return join_and_create(resolved, size, rank, std::move(device));
  auto backend = std::make_unique<SelfBackend>(device->arena());
  return std::make_shared<Communicator>(resolved, size, rank, std::move(device), std::move(backend),
                                        std::make_unique<OperationLog>(*config(), rank, true));
}

}  // namespace hccl::comm
