// SPDX-License-Identifier: Apache-2.0
// Memory that a test's ranks share independently of the library: unique ids, barriers and counters.
#pragma once

#include <hccl.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace hccl::test {

inline constexpr int kMostSlots = 256;
inline constexpr int kMostRanks = 64;

// The test program maps a board as shared memory before it forks the ranks. All members are
// therefore plain data or lock-free atomics, which work across processes.
class Board {
 public:
  void publish_id(int slot, const hcclUniqueId& id);
  // Blocks until an id has been published in `slot`. Throws Failure after a minute.
  [[nodiscard]] hcclUniqueId await_id(int slot);

  // Blocks until `parties` callers have reached barrier `slot`, which is reusable. Throws Failure
  // after a minute.
  void barrier(int slot, int parties);
  // Blocks until counter(slot) is at least `value`. Throws Failure after a minute.
  void await(int slot, std::int64_t value);
  [[nodiscard]] std::atomic<std::int64_t>& counter(int slot);

 private:
  std::array<std::atomic<int>, kMostSlots> id_ready_;
  std::array<hcclUniqueId, kMostSlots> ids_{};
  std::array<std::atomic<std::int64_t>, kMostSlots> arrivals_;
  std::array<std::atomic<std::int64_t>, kMostSlots> counters_;
};

}  // namespace hccl::test
