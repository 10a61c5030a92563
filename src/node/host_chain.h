// SPDX-License-Identifier: Apache-2.0
// The path of most larger reductions whose buffers all lie in host memory, if several ranks share
// each core. Peers cannot map that memory, so each rank adds its own data, in rank order, to
// accumulators that all ranks map. With HostPath, each rank would fill its own staging buffer and
// wait for all others in every slice.
#pragma once

#include "node/address_range.h"
#include "node/host_collective.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hccl::node {

// A slice's accumulator lies in the staging buffer of rank 0. Rank 0 copies its data there, and
// then each further rank adds its own data. A rank counts these steps in `filled` of its
// SliceCounters. Finally, each receiver copies the result out. A rank counts a slice in `released`
// when it has copied the result out or, if it receives nothing, when the slice is complete.
class HostChain : private HostCollective {
 public:
  // Returns whether `call` takes this path if the buffers of all ranks are in host memory. The same
  // on all ranks.
  [[nodiscard]] static bool serves(const CollectiveCall& call, const NodeSegment& node);

  // The arguments are those of HostCollective.
  HostChain(NodeSegment& node, StallMonitor& stalls, std::uint64_t cache_bytes,
            CollectiveOperation& op, std::uint32_t first);

  // Behaves like HostPath::run().
  bool run();

 private:
  // Consecutive slices use the accumulators in turn.
  static constexpr std::uint32_t kAccumulators = 8;
  static constexpr std::uint64_t kAccumulatorBytes = kHostChainBytes / kAccumulators;
  static_assert(kAccumulators <= kMaxAhead + 1);  // each call of parts_ uses at least one

  // The current call, or a later one that has begun ahead of its turn.
  struct Part {
    CollectiveCall call;  // with the program's addresses
    HostSlices slices;
    std::uint32_t first;  // the number of the call's first slice
  };

  // Adds this rank's data to every slice that is ready for it, in the current call and later ones.
  void add_ready_slices();
  // Returns whether this rank may access the accumulators of the current call. Even before all
  // ranks have posted, this is true once rank 0 has posted the same call with a staging buffer.
  [[nodiscard]] bool rank_zero_takes_part() const;
  void map_accumulators();
  // Resets this rank's `filled` counter to the first slice of the current call, because that call
  // takes another path.
  void withdraw();
  void wake_after_adding();
  // Returns the event of the lane's bell that wakes `rank`. Ranks 32 apart share an event.
  [[nodiscard]] static std::uint32_t wake_event_of(int rank) { return 1U << rank % 32; }
  // Returns the call that slice added_ belongs to. Begins that call if necessary. Returns null if
  // it may not begin yet.
  [[nodiscard]] const Part* part_to_add();
  // If the next call can begin now, posts it, appends it to parts_ and returns true. Otherwise
  // returns false.
  bool begin_next();
  // Returns whether this rank may add its data to slice `number`.
  [[nodiscard]] bool can_add(std::uint32_t number) const;
  void add(const Part& part, std::uint32_t number);
  // Returns whether all ranks have added their data to slice `number`.
  [[nodiscard]] bool is_complete(std::uint32_t number) const {
    return reached(node_.size() - 1, &SliceCounters::filled, number + 1);
  }
  void drain_complete_slices();
  void drain(std::uint32_t number) const;
  void await_progress();
  // Returns where `chunk` begins in the accumulator of slice `number`.
  [[nodiscard]] std::byte* accumulator(const Part& part, std::uint32_t number, int chunk) const;
  [[nodiscard]] static std::uint32_t end_of(const Part& part) {
    return part.first + part.slices.count();
  }

  const std::uint32_t end_;
  std::uint32_t added_;    // the first slice to which this rank has not added its data
  std::uint32_t drained_;  // the first slice that this rank has not drained
  const bool is_on_host_;  // whether all buffers of this rank are in host memory
  bool has_mapped_ = false;
  bool agreed_ = false;  // whether all ranks are known to take this path for the current call
  PostedRanks posted_ranks_;
  std::array<std::optional<Part>, kAccumulators> parts_;  // the current call and later ones
  std::array<AddressRange, kAccumulators> results_;       // of these calls
  std::size_t part_count_ = 1;
  bool has_no_more_ = false;  // whether the stream has no further call that can begin
};

}  // namespace hccl::node
