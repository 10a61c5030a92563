// SPDX-License-Identifier: Apache-2.0
// Claims tiles of an open collective and computes them on behalf of all ranks.
#pragma once

#include "node/chunk_map.h"
#include "node/collective_operation.h"
#include "node/node_segment.h"
#include "node/tile_plan.h"
#include "reduce/reduce.h"

#include <hccl_types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hccl::node {

class TileRunner {
 public:
  // `cache_bytes`: the size of the caches, which determines the StorePolicy of the tiles.
  TileRunner(NodeSegment& node, std::uint64_t cache_bytes, const CollectiveOperation& op)
      : node_(node), cache_bytes_(cache_bytes), op_(op) {}

  // Plans the operation's current slice. Call for each slice, and again if the slicing or
  // has_shares changes.
  void plan_slice();
  [[nodiscard]] const TilePlan& plan() const { return *plan_; }

  // Runs tiles until no tile is left to claim or the operation has failed. Completes the slice
  // after the slice's last tile. On an error, fails the communicator, so that no peer waits for
  // this rank.
  void run();

 private:
  template <class Visit>
  [[nodiscard]] bool all_peer_buffers(Visit visit) const;
  [[nodiscard]] bool map_peers();
  [[nodiscard]] std::optional<std::uint32_t> claim_tile() const;
  [[nodiscard]] std::optional<std::uint32_t> next_tile();
  [[nodiscard]] bool enter_tile(std::uint32_t number) const;
  void leave_tile() const;
  void fail(hcclResult_t code, const char* why);
  void complete_slice() const;
  void run_tile(std::uint32_t number) const;
  void exchange_tile(const Tile& tile) const;
  void exchange_through_bounce(const std::byte* outgoing, std::byte* at_peer, std::byte* at_rank,
                               std::size_t bytes) const;
  [[nodiscard]] reduce::StorePolicy choose_store_policy() const;
  [[nodiscard]] const std::byte* source(int rank, int chunk, const Tile& tile) const;
  [[nodiscard]] std::byte* destination(int rank, int chunk, const Tile& tile) const;

  NodeSegment& node_;
  const std::uint64_t cache_bytes_;
  const CollectiveOperation& op_;
  std::optional<TilePlan> plan_;
  reduce::StorePolicy store_policy_ = reduce::StorePolicy::cached;
  bool mapped_ = false;  // whether all_peer_buffers() are in this process's page tables
  // With shares, this rank computes the tiles in [next_, end_) and no others.
  std::uint32_t next_ = 0;
  std::uint32_t end_ = 0;
};

}  // namespace hccl::node
