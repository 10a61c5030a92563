// SPDX-License-Identifier: Apache-2.0
// The transports of a communicator, and the one that is used for each peer.
#pragma once

#include "base/config.h"
#include "bootstrap/rank_table.h"
#include "transport/registry.h"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hccl::network {

// Thread safety: call announce(), then choose_all(), then the others on any thread.
class Routes {
 public:
  // Throws Error(hcclInvalidArgument) if HCCL_TRANSPORT names an unknown transport.
  Routes(std::shared_ptr<const Config> config, int rank, int size);
  // Throws Error(hcclInvalidArgument), which names HCCL_TRANSPORT and the known transports, if
  // `forced` is neither the name of a transport nor empty.
  static void check(const std::string& forced);

  // Opens the transports that HCCL_TRANSPORT allows, and returns this rank's addresses, which the
  // other ranks need. Throws what TransportFactory::make() throws, and Error(hcclSystemError) if
  // none of the transports is available.
  [[nodiscard]] Bytes announce(const bootstrap::CommunicatorSecret& secret);
  // Chooses a transport for each peer. `table` contains each rank's result of announce(). Throws
  // Error(hcclInvalidUsage) if no transport reaches a rank; the text names the rank and the reason.
  void choose_all(const bootstrap::RankTable& table, std::vector<std::string> rank_texts);
  // Opens a connection to a peer. Throws what Transport::open() throws.
  [[nodiscard]] std::unique_ptr<transport::Endpoint> open(int peer,
                                                          transport::ConnectionId connection);

  // Returns why a transport in use does not work at present. If all work, returns a Trouble with
  // hcclSuccess. Does not block.
  [[nodiscard]] transport::Trouble trouble() const;
  [[nodiscard]] const std::vector<std::unique_ptr<transport::Transport>>& transports() const {
    return transports_;
  }
  // Returns the description of a rank: "rank 3 (pid 41, host a)".
  [[nodiscard]] const std::string& rank_text(int rank) const {
    return rank_texts_[static_cast<std::size_t>(rank)];
  }
  // Returns the name of the transport that is used for a rank, or "itself" for this rank.
  [[nodiscard]] std::string transport_to(int rank) const;
  // Returns the names of the transports in use, such as "shm+tcp".
  [[nodiscard]] std::string transport_names() const;
  // Logs which transport is used for each rank, why other transports are not (Route::rejected), and
  // the remarks of all transports.
  void explain() const;
  // If a transport is in use only because a faster one, such as RoCE, cannot be used, logs why, for
  // one rank. Logs nothing if HCCL_TRANSPORT is set.
  void log_fallback() const;

 private:
  struct Route {
    transport::Transport* transport = nullptr;
    Bytes address;
    // The unavailable transports, and those of higher preference, each with the reason why it
    // cannot be used.
    std::string rejected;
  };
  [[nodiscard]] Route choose(int peer, std::span<const std::byte> announced) const;

  const std::shared_ptr<const Config> config_;
  const int rank_;
  const int size_;
  std::vector<std::unique_ptr<transport::Transport>> transports_;
  std::map<std::string, std::string> missing_;  // reasons why transports are unavailable, by name
  std::vector<Route> routes_;                   // by rank
  std::vector<std::string> rank_texts_;
};

}  // namespace hccl::network
