// SPDX-License-Identifier: Apache-2.0
// The transports of a communicator, and the choice of one of them for each peer.
#pragma once

#include "base/config.h"
#include "base/secret.h"
#include "bootstrap/rank_table.h"
#include "transport/registry.h"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hccl::network {

// Thread safety: call announce() and choose_all() first; any thread may then call any function.
class Routes {
 public:
  // Throws Error(hcclInvalidArgument) if HCCL_TRANSPORT names an unknown transport.
  Routes(std::shared_ptr<const Config> config, int rank, int size);

  // Opens the transports and returns the addresses to publish to the other ranks. Throws
  // Error(hcclSystemError) if a requested transport is not available.
  [[nodiscard]] std::vector<std::byte> announce(const Secret& secret);
  // Chooses a transport for each peer. `table`: holds the bytes that announce() returned on each
  // rank. Throws Error(hcclInvalidUsage), whose text names a rank that no transport reaches, and
  // the reason.
  void choose_all(const bootstrap::RankTable& table, std::vector<std::string> rank_texts);
  // Opens a connection to a peer. Throws what Transport::open() throws.
  [[nodiscard]] std::unique_ptr<transport::Endpoint> open(int peer,
                                                          transport::ConnectionId connection);

  // If one of the transports in use cannot work at present, returns the reason; otherwise returns a
  // Trouble with hcclSuccess. Does not block.
  [[nodiscard]] transport::Trouble trouble() const;
  [[nodiscard]] const std::vector<std::unique_ptr<transport::Transport>>& transports() const {
    return transports_;
  }
  // Returns the description of a rank: "rank 3 (pid 41, host a)".
  [[nodiscard]] const std::string& rank_text(int rank) const {
    return rank_texts_[static_cast<std::size_t>(rank)];
  }
  // Returns the name of the transport to a rank.
  [[nodiscard]] std::string transport_to(int rank) const;
  // Returns the names of the transports in use: "shm+tcp".
  [[nodiscard]] std::string transport_names() const;
  // Logs the transport used for each rank, and why preferred ones do not reach that rank.
  void explain() const;
  // Logs why RoCE is not used where a user could expect it.
  void log_fallback() const;

 private:
  struct Route {
    transport::Transport* transport = nullptr;
    std::vector<std::byte> address;
    std::string rejected;  // preferred transports, and why they do not reach the rank
  };
  [[nodiscard]] Route choose(int peer, std::span<const std::byte> announced) const;

  const std::shared_ptr<const Config> config_;
  const int rank_;
  const int size_;
  std::vector<std::unique_ptr<transport::Transport>> transports_;
  std::map<std::string, std::string> missing_;  // by unavailable transport: the reason, as a clause
  std::vector<Route> routes_;                   // by rank
  std::vector<std::string> rank_texts_;
};

}  // namespace hccl::network
