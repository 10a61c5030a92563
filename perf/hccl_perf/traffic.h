// SPDX-License-Identifier: Apache-2.0
// The library's report on measured calls: the algorithm, the transport and the bytes moved.
#pragma once

#include <cstdint>
#include <vector>

#include <hccl_emulation.h>

namespace hccl_perf {

// The traffic of one rank's measured calls. Ranks exchange this structure as bytes, so it must be
// trivially copyable. If the library does not report traffic, the algorithm and the transport are
// "unknown".
struct Traffic : hcclEmulationTraffic_t {
  std::uint64_t peers;  // number of ranks with traffic in either direction
};

// Sums the traffic from each start() or resume() to the next pause(). start() also resets the sum.
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
  Traffic last_{};                // at the last pause(); only its names are used
  std::vector<Traffic> counted_;  // by peer
  std::vector<Traffic> before_;
};

}  // namespace hccl_perf
