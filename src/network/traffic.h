// SPDX-License-Identifier: Apache-2.0
// Counts what the completed calls of a communicator have moved over transports. For any thread.
#pragma once

#include "transport/endpoint.h"

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hccl::network {

class Traffic {
 public:
  void resize(int ranks) { by_peer_.resize(static_cast<std::size_t>(ranks)); }
  // Adds what an endpoint has moved since `seen`, and makes that what has been seen. `algorithm`,
  // by which it has moved, lives as long as the process.
  void add(const transport::Endpoint& endpoint, transport::Counters& seen,
           std::string_view algorithm);

  [[nodiscard]] std::string algorithm() const;
  [[nodiscard]] transport::Counters with(int peer) const;
  [[nodiscard]] transport::Counters with_all() const;

 private:
  mutable std::mutex mutex_;
  std::string_view algorithm_ = "none";
  std::vector<transport::Counters> by_peer_;
};

}  // namespace hccl::network
