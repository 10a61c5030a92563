// SPDX-License-Identifier: Apache-2.0
// The back end of a communicator whose ranks do not all map each other's memory: its transports and
// their addresses, and for each stream the connections that its calls use.
#pragma once

#include "base/secret.h"
#include "base/wait_limit.h"
#include "base/waiter.h"
#include "network/network_memory.h"
#include "network/stall_reports.h"
#include "network/traffic.h"
#include "node/cpu_topology.h"
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

namespace hccl::network {

class StreamConnections;
class NetworkMessages;

struct NetworkOptions {
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

class NetworkBackend {
 public:
  // Throws Error(hcclInvalidArgument) for an unknown algorithm or transport.
  explicit NetworkBackend(NetworkOptions options);
  ~NetworkBackend();
  NetworkBackend(const NetworkBackend&) = delete;
  NetworkBackend& operator=(const NetworkBackend&) = delete;

  // Opens the transports and returns the addresses to publish to the other ranks. Throws
  // Error(hcclSystemError) if a transport that was asked for is not available.
  [[nodiscard]] std::vector<std::byte> announce(const Secret& secret);
  // Chooses a transport for each peer. `announced`: by rank, what announce() returned there. Throws
  // Error(hcclSystemError) that names a rank that no transport reaches, and why.
  void connect(const std::vector<std::vector<std::byte>>& announced, planner::Topology topology,
               std::vector<std::string> rank_texts);
  // Call before anything runs. `fault`: checked while calls wait. `cores`: decides how to wait.
  // `arena`: the device's memory, which must outlive the back end.
  void attach(node::Fault& fault, const node::CoreCount& cores, device::Arena& arena);

  // Call before a call uses a buffer, of the device or of the program.
  void learn(std::uint64_t address, std::uint64_t bytes) { memory_->learn(address, bytes); }
  // Returns the connections of the lane with that number, created at the first call. Throws
  // Error(hcclSystemError) if no descriptor is left.
  [[nodiscard]] StreamConnections& lane(std::uint32_t ordinal);
  // Returns how many collectives this rank has completed on a lane. Call on the turn of its stream.
  [[nodiscard]] std::uint64_t calls_of(std::uint32_t ordinal);
  // Releases the state of a stream, and of its lane if it has one.
  void forget(std::uint64_t stream, std::optional<std::uint32_t> ordinal);
  [[nodiscard]] NetworkMessages& messages() { return *messages_; }
  // Wakes all threads that wait in calls, so that they check for a fault. Thread safety: any
  // thread.
  void wake();

  [[nodiscard]] std::unique_ptr<transport::Endpoint> open(int peer,
                                                          transport::ConnectionId connection);
  // Call before an endpoint ends. Blocks until its peer has what was sent, at most until the
  // deadline; does nothing if the communicator has failed.
  void part_from(transport::Endpoint& endpoint, Deadline deadline) const;
  [[nodiscard]] const NetworkOptions& options() const { return options_; }
  // Returns the limit of how long calls of this rank wait for others.
  [[nodiscard]] WaitLimit& wait_limit() { return wait_limit_; }
  [[nodiscard]] const planner::Planner& planner() const { return *planner_; }
  [[nodiscard]] node::Fault& fault() const { return *fault_; }
  [[nodiscard]] WaitLadder ladder() const { return ladder_; }
  // "rank 3 (pid 41, host a)"
  [[nodiscard]] const std::string& rank_text(int rank) const {
    return rank_texts_[static_cast<std::size_t>(rank)];
  }
  // Return the name of the transport to a rank, or of the transports to all ranks: "shm+tcp".
  [[nodiscard]] std::string transport_to(int rank) const;
  [[nodiscard]] std::string transports() const;
  // Returns what keeps a transport in use from working now. Does not block.
  [[nodiscard]] transport::Trouble trouble() const;
  [[nodiscard]] Traffic& traffic() { return traffic_; }
  [[nodiscard]] StallReports& stall_reports() { return stall_reports_; }
  // Returns true once in the life of the communicator.
  [[nodiscard]] bool claim_hang_report() { return !hang_reported_.exchange(true); }

 private:
  struct Route {
    transport::Transport* transport = nullptr;
    std::vector<std::byte> address;
    std::string rejected;  // preferred transports, and why they do not reach the rank
  };
  void explain() const;
  // Logs why RoCE is not used where one could expect it.
  void tell_fallback() const;
  [[nodiscard]] Route choose_route(int peer, std::span<const std::byte> announced) const;

  const NetworkOptions options_;
  WaitLimit wait_limit_{options_.operation_timeout};
  std::vector<std::unique_ptr<transport::Transport>> transports_;
  std::map<std::string, std::string> missing_;  // unavailable transports, and why: clauses
  std::unique_ptr<NetworkMemory> memory_;
  std::vector<Route> routes_;  // by rank
  std::optional<planner::Planner> planner_;
  std::vector<std::string> rank_texts_;
  node::Fault* fault_ = nullptr;
  WaitLadder ladder_ = WaitLadder::yielding();
  std::atomic<bool> hang_reported_{false};
  Traffic traffic_;
  StallReports stall_reports_;
  std::mutex lanes_mutex_;
  std::map<std::uint32_t, std::unique_ptr<StreamConnections>> lanes_;
  std::unique_ptr<NetworkMessages> messages_;
};

}  // namespace hccl::network
