// SPDX-License-Identifier: Apache-2.0
// The ways between the ranks of a communicator that do not all map each other's memory: transports,
// their addresses, and for each stream the endpoints that its calls use.
#pragma once

#include "base/secret.h"
#include "base/wait_limit.h"
#include "base/waiter.h"
#include "comm/fabric_memory.h"
#include "comm/inquiries.h"
#include "comm/traffic.h"
#include "node/cores.h"
#include "node/fault.h"
#include "planner/planner.h"
#include "transport/registry.h"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hccl::comm {

class FabricLane;
class FabricMessages;

struct FabricOptions {
  int rank = 0;
  int size = 1;
  std::string box;
  std::string algorithm;  // forced, or empty
  std::string transport;
  std::string interfaces;                          // HCCL_SOCKET_IFNAME
  std::string ib_devices;                          // HCCL_IB_HCA
  std::optional<int> ib_gid_index;                 // HCCL_IB_GID_INDEX
  bool ib_disable = false;                         // HCCL_IB_DISABLE
  bool explain = false;                            // HCCL_EXPLAIN
  std::chrono::milliseconds operation_timeout{0};  // 0: never
  std::chrono::milliseconds hang_report{0};        // 0: never
};

class Fabric {
 public:
  // Throws Error(hcclInvalidArgument) for an algorithm or transport that there is not.
  explicit Fabric(FabricOptions options);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Opens the transports; what the other ranks need to know of them. Throws Error.
  [[nodiscard]] std::vector<std::byte> announce(const Secret& secret);
  // Takes what all ranks have announced, by rank, and where they are. Throws Error naming a rank
  // that no transport reaches, and why.
  void connect(const std::vector<std::vector<std::byte>>& announced, topology::Topology topology,
               std::vector<std::string> rank_texts);
  // Before anything runs: whom to ask for faults, how to wait, and where the device's memory is.
  // The arena outlives the fabric.
  void attach(node::Fault& fault, const node::CoreCount& cores, device::Arena& arena);

  // Before a call uses a buffer, the device's or the program's.
  void learn(std::uint64_t address, std::uint64_t bytes) { memory_->learn(address, bytes); }
  // Returns the lane with that number and makes it at the first call. Throws
  // Error(hcclSystemError) if there is no descriptor left for it.
  [[nodiscard]] FabricLane& lane(std::uint32_t ordinal);
  // The collectives that this rank has completed on a lane. On the turn of the lane's stream.
  [[nodiscard]] std::uint64_t calls_of(std::uint32_t ordinal);
  // The stream, and its lane if it has one, are used no more.
  void forget(std::uint64_t stream, std::optional<std::uint32_t> ordinal);
  [[nodiscard]] FabricMessages& messages() { return *messages_; }
  // Wakes whoever waits in a call, to look for a fault. Any thread.
  void wake();

  [[nodiscard]] std::unique_ptr<transport::Endpoint> open(int peer,
                                                          transport::ConnectionId connection);
  // Before an endpoint ends: its peer gets what was sent, unless the communicator has failed.
  void part_from(transport::Endpoint& endpoint, Deadline deadline) const;
  [[nodiscard]] const FabricOptions& options() const { return options_; }
  // How long calls of this rank wait for others, from now on.
  [[nodiscard]] WaitLimit& wait_limit() { return wait_limit_; }
  [[nodiscard]] const planner::Planner& planner() const { return *planner_; }
  [[nodiscard]] node::Fault& fault() const { return *fault_; }
  [[nodiscard]] WaitLadder ladder() const { return ladder_; }
  // "rank 3 (pid 41, host a)"
  [[nodiscard]] const std::string& rank_text(int rank) const {
    return rank_texts_[static_cast<std::size_t>(rank)];
  }
  // The name of the transport to another rank, or to all, each once: "shm+tcp".
  [[nodiscard]] std::string transport_to(int rank) const;
  [[nodiscard]] std::string transports() const;
  // Returns what keeps a transport that leads to some rank from working now. Does not block.
  [[nodiscard]] transport::Trouble trouble() const;
  [[nodiscard]] Traffic& traffic() { return traffic_; }
  [[nodiscard]] Inquiries& inquiries() { return inquiries_; }
  // True once in the life of the communicator.
  [[nodiscard]] bool claim_hang_report() { return !hang_reported_.exchange(true); }

 private:
  struct Way {
    transport::Transport* transport = nullptr;
    std::vector<std::byte> address;
    std::string rejected;  // transports that come before it, and why they do not lead there
  };
  void explain() const;
  // Where RoCE is not used although it could be thought to be.
  void tell_fallback() const;
  [[nodiscard]] Way choose_way(int peer, std::span<const std::byte> announced) const;

  const FabricOptions options_;
  WaitLimit wait_limit_{options_.operation_timeout};
  std::vector<std::unique_ptr<transport::Transport>> transports_;
  std::map<std::string, std::string> missing_;  // transports that are not here, and why: clauses
  std::unique_ptr<FabricMemory> memory_;
  std::vector<Way> ways_;  // by rank
  std::optional<planner::Planner> planner_;
  std::vector<std::string> rank_texts_;
  node::Fault* fault_ = nullptr;
  WaitLadder ladder_ = WaitLadder::yielding();
  std::atomic<bool> hang_reported_{false};
  Traffic traffic_;
  Inquiries inquiries_;
  std::mutex lanes_mutex_;
  std::map<std::uint32_t, std::unique_ptr<FabricLane>> lanes_;
  std::unique_ptr<FabricMessages> messages_;
};

}  // namespace hccl::comm
