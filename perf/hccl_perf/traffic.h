// SPDX-License-Identifier: Apache-2.0
// How measured calls ran and what they moved over transports, as the library tells.
#pragma once

#include <cstdint>
#include <vector>

#include <hccl_emulation.h>

namespace hccl_perf {

// The traffic of some calls of one rank. Travels between ranks as bytes.
struct Traffic : hcclEmulationTraffic_t {  // "unknown" with a library that does not tell
  std::uint64_t peers;                     // ranks that something came from or went to
};

// Counts between start() and pause(), and between resume() and pause().
class TrafficMeter {
 public:
  TrafficMeter(hcclComm_t communicator, int rank, int ranks)
      : communicator_(communicator), rank_(rank), ranks_(ranks) {}

  void start();
  void pause();
  void resume();
  [[nodiscard]] Traffic total() const;

 private:
  [[nodiscard]] Traffic with(int peer) const;

  hcclComm_t communicator_;
  int rank_;
  int ranks_;
  Traffic last_{};                // how the calls ran that were counted last
  std::vector<Traffic> counted_;  // by peer, as are all
  std::vector<Traffic> before_;
};

}  // namespace hccl_perf
