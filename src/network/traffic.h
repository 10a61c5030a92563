// SPDX-License-Identifier: Apache-2.0
// Counts the bytes and transfers that a communicator's completed calls have moved over transports.
// Thread safety: any thread, after resize().
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
  // Adds the traffic of an endpoint since its counters were `seen`, and sets `seen` to the current
  // counters. `algorithm` names the algorithm that caused the traffic; the name must have static
  // lifetime.
  void add(const transport::Endpoint& endpoint, transport::Counters& seen,
           std::string_view algorithm);

  // Sets the algorithm of a call in which this rank has moved no bytes over transports.
  void set_algorithm(std::string_view algorithm);

  [[nodiscard]] std::string algorithm() const;
  [[nodiscard]] transport::Counters with(int peer) const;
  [[nodiscard]] transport::Counters with_all() const;

 private:
  mutable std::mutex mutex_;
  std::string_view algorithm_ = "none";
  std::vector<transport::Counters> by_peer_;
};

}  // namespace hccl::network
