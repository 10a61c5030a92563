// SPDX-License-Identifier: Apache-2.0
// Building a communicator: the rendezvous, the engine of this node's ranks, the network to the
// others, and who is watched.
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/rank_text.h"
#include "base/shared_memory.h"
#include "bootstrap/join.h"
#include "bootstrap/server_registry.h"
#include "comm/communicator.h"
#include "network/network_backend.h"
#include "node/cpu_topology.h"

#include <algorithm>
#include <cstring>

namespace hccl::comm {
namespace {

// The facts that ranks tell each other of themselves, besides those that bootstrap knows.
struct RankBlob {
  static constexpr std::uint32_t kLayout = 3;
  std::uint32_t layout = kLayout;
  std::uint32_t module = 0;
  std::uint64_t memory_bytes = 0;  // of the memory file that comes with it
  node::CpuAllowance cpus;
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
    throw Error(
        hcclInvalidUsage,
        text(text_of(member), " runs another version of hccl; install the same on all ranks"));
  }
  return blob;
}

// Throws Error for memory of another rank of this node that may not be mapped. The lowest of them
// leads, and has made the control segment.
void inspect(const bootstrap::RankTable& table, int own_rank) {
  const std::string& box = table.members[static_cast<std::size_t>(own_rank)].box;
  int leader = -1;
  int ranks = 0;
  for (const bootstrap::RankInfo& member : table.members) {
    if (member.box != box) continue;
    if (ranks++ == 0) leader = member.rank;
    require_sealed(member.memory, decode(member).memory_bytes, text_of(member));
  }
  require_sealed(table.control, node::ControlBlock::bytes(ranks),
                 text_of(table.members[static_cast<std::size_t>(leader)]));
}

planner::Topology topology_of(const bootstrap::RankTable& table) {
  std::vector<std::string> boxes;
  for (const bootstrap::RankInfo& member : table.members) boxes.push_back(member.box);
  return planner::Topology(boxes);
}

network::NetworkOptions network_options(const Config& settings, int rank, int size) {
  network::NetworkOptions options;
  options.rank = rank;
  options.size = size;
  options.box = box_identity();
  options.algorithm = settings.algorithm;
  options.explain = settings.explain;
  options.transport = settings.transport;
  options.interfaces = settings.socket_interfaces;
  options.ib_devices = settings.ib_devices;
  options.ib_gid_index = settings.ib_gid_index;
  options.ib_disable = settings.ib_disable;
  options.operation_timeout = settings.operation_timeout;
  options.hang_report = settings.hang_report;
  return options;
}

}  // namespace

std::shared_ptr<Communicator> Communicator::create(const hcclUniqueId& id, int size, int rank,
                                                   std::shared_ptr<device::Device> device) {
  if (size < 1 || size > kMostRanks)
    throw Error(hcclInvalidArgument, text("nranks is ", size, "; pass 1 to ", kMostRanks));
  if (rank < 0 || rank >= size) {
    throw Error(hcclInvalidArgument,
                text("rank is ", rank, " of ", size, "; pass 0 to ", size - 1));
  }
  const hcclUniqueId resolved = bootstrap::resolve_unique_id(id);
  std::shared_ptr<Communicator> communicator(
      new Communicator(resolved, size, rank, std::move(device)));
  bool is_first_of_node = true;
  if (size > 1) is_first_of_node = communicator->connect();
  communicator->operation_log_ = std::make_unique<OperationLog>(*config(), rank, is_first_of_node);
  return communicator;
}

bool Communicator::connect() {
  const auto settings = config();
  RankBlob blob;
  blob.module = device_->module();
  blob.memory_bytes = device_->arena().view()->bytes();
  blob.cpus = node::CpuAllowance::of_this_thread();
  auto network =
      std::make_unique<network::NetworkBackend>(network_options(*settings, rank_, size_));
  bootstrap::Contribution mine{encode(blob), device_->arena().view()->file().duplicate(),
                               [&](const Secret& secret) { return network->announce(secret); },
                               !settings->algorithm.empty() || !settings->transport.empty(),
                               [&](const bootstrap::RankTable& table) { inspect(table, rank_); }};
  const bool always = mine.announces_always;
  const auto make_control = [](int ranks) {
    if (ranks <= node::kMaxRanks) return node::ControlBlock::create(ranks);
    throw Error(hcclInvalidArgument,
                text(ranks, " ranks on one node; start at most ", node::kMaxRanks, " on each"));
  };
  bootstrap::RankTable table = bootstrap::join(id_, size_, rank_, std::move(mine), make_control,
                                               Deadline::after(settings->init_timeout));
  const std::vector<node::CpuAllowance> cpus = join_node(table);
  planner::Topology topology = topology_of(table);
  if (!topology.is_one_node() || always) {
    std::vector<std::vector<std::byte>> announced;
    std::vector<std::string> texts;
    for (bootstrap::RankInfo& member : table.members) {
      announced.push_back(std::move(member.announced));
      texts.push_back(text_of(member));
    }
    network->connect(announced, std::move(topology), std::move(texts));
    network->attach(segment_->fault(), segment_->cores(), device_->arena());
    network_ = std::move(network);
  } else {
    engine_ = std::make_unique<node::Engine>(
        *segment_, node::EngineOptions{node::last_level_cache_bytes(cpus),
                                       settings->operation_timeout, settings->hang_report});
  }
  if (table.link.connection.socket.valid()) {
    attach_link(std::move(table.link));
  }
  watch_mates(table);
  log_summary(table);
  return topology_of(table).local_rank(rank_) == 0;
}

void Communicator::attach_link(bootstrap::LinkSocket socket) {
  network::StallReports& stall_reports = network_->stall_reports();
  stall_reports.attach({[this](const bootstrap::Waiting& waiting) {
                          if (const auto others = link()) others->answer(waiting);
                        },
                        [this](const bootstrap::Waiting& waiting) {
                          if (const auto others = link()) others->ask_who_is_missing(waiting);
                        },
                        socket.server});
  bootstrap::ControlLink::Callbacks callbacks;
  callbacks.fault = [this](hcclResult_t code, const std::string& what) {
    if (!failed()) {
      segment_->fault().raise_with(code, [&] {
        const transport::Trouble here = network_->trouble();  // then others seem to be lost
        return here.code != hcclSuccess ? text(what, "; here: ", here.text) : what;
      });
    }
    network_->wake();
  };
  callbacks.departed = [this, &stall_reports](int rank) {
    stall_reports.on_departed(rank);
    network_->wake();
  };
  callbacks.inquiry = [this, &stall_reports] {
    stall_reports.on_inquiry();
    network_->wake();
  };
  callbacks.verdict = [&stall_reports](const std::string& root_cause) {
    stall_reports.on_verdict(root_cause);
  };
  const std::lock_guard lock(link_mutex_);  // callbacks ask for it
  link_ = std::make_shared<bootstrap::ControlLink>(std::move(socket), std::move(callbacks));
}

// The ranks of a node are numbered in the order of the table.
std::vector<node::CpuAllowance> Communicator::join_node(const bootstrap::RankTable& table) {
  const std::string& box = table.members[static_cast<std::size_t>(rank_)].box;
  std::vector<node::Peer> peers;
  std::vector<node::CpuAllowance> allowances;
  int rank = 0;
  for (const bootstrap::RankInfo& member : table.members) {
    if (member.box != box) continue;
    if (member.rank == rank_) rank = static_cast<int>(peers.size());
    allowances.push_back(decode(member).cpus);
    peers.push_back({member.rank, device::ArenaView::open(member.memory), member.pid,
                     member.shares_pids, member.host});
  }
  const node::CoreCount cores = node::count_cores(allowances);
  if (!cores.exclusive && !cores.yields_to_ranks) WaitLadder::share_cores_with_other_groups();
  segment_ = std::make_unique<node::NodeSegment>(SharedSegment::map(table.control),
                                                 std::move(peers), device_->arena(), rank, cores);
  return allowances;
}

void Communicator::watch_mates(const bootstrap::RankTable& table) {
  int local = 0;
  const std::string& box = table.members[static_cast<std::size_t>(rank_)].box;
  for (const bootstrap::RankInfo& member : table.members) {
    if (member.box != box) continue;
    const int mate = local++;
    if (!member.process.valid()) continue;  // of this very process
    watches_.emplace_back(member.process.duplicate(), [this, mate] {
      segment_->rank_died(mate);
      tell_others();
    });
  }
}

void Communicator::log_summary(const bootstrap::RankTable& table) const {
  if (!log_enabled(LogLevel::info)) return;
  const auto& cores = segment_->cores();
  const planner::Topology topology = topology_of(table);
  const auto strangers = std::ranges::count_if(table.members, [](const auto& member) {
    return member.process.valid() && !member.shares_pids;
  });
  const std::string namespaces =
      strangers == 0 ? "" : text(", ", strangers, " ranks in other pid namespaces");
  std::string hosts;
  for (const auto& ranks : topology.nodes()) {
    const auto& host = table.members[static_cast<std::size_t>(ranks.front())].host;
    hosts += text(hosts.empty() ? "" : ", ", host);
  }
  log(LogLevel::info, "comm", "rank ", rank_, " of ", size_, " on ", topology.nodes().size(),
      topology.is_one_node() ? " node (" : " nodes (", hosts, "), module ", device_->module(),
      ", engine ", network_ ? "schedules" : "node", ", ", cores.cores, " cores, waits by ",
      cores.ladder().name, ", memory shared by memfd", namespaces);
}

}  // namespace hccl::comm
