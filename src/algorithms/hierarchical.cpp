// SPDX-License-Identifier: Apache-2.0
// Hierarchical all-reduce: a direct reduce-scatter on each node, an all-reduce along each rail, and
// a direct all-gather on each node. A rail consists of the ranks with the same index on their
// nodes. There are as many rails as the smallest node has ranks. The whole all-reduce takes two
// more steps than the all-reduce along a rail. Across nodes, each rank sends only as much as an
// all-reduce of its rail's share of the data requires.
#include "algorithms/hierarchical.h"

#include "algorithms/numbering.h"
#include "algorithms/rank_order.h"

#include <algorithm>
#include <numeric>

namespace hccl::algorithms {

using schedule::input;
using schedule::output;
using schedule::Role;
using schedule::ScheduleBuilder;
using schedule::Span;

namespace {

// A rank's node, its index on that node, and the number of rails.
struct Position {
  Position(std::int32_t rank, std::span<const std::int32_t> node_sizes)
      : rails(*std::min_element(node_sizes.begin(), node_sizes.end())) {
    while (rank >= local.first + node_sizes[node]) local.first += node_sizes[node++];
    local.count = node_sizes[node];
    place = rank - local.first;
  }

  std::size_t node = 0;
  RankGroup local;
  std::int32_t place = 0;
  std::int32_t rails;
};

Shape rail_shape(const Shape& shape, std::size_t node, std::size_t nodes) {
  Shape rail = shape;
  rail.in_place = true;  // a rail reduces the output in place
  rail.rank = static_cast<std::int32_t>(node);
  rail.rank_count = static_cast<std::int32_t>(nodes);
  rail.root = 0;
  return rail;
}

// Translates a rail's schedule: its chunks become the rail's chunks of the output, and its ranks
// become ranks of the whole schedule, numbered node by node.
class Rail {
 public:
  Rail(const Position& position, std::span<const std::int32_t> node_sizes, const Schedule& schedule)
      : schedule_(schedule),
        first_chunk_(chunk_of(position.place) * schedule.block_chunks),
        own_(position.local.first + position.place) {
    std::int32_t first = 0;
    for (const std::int32_t size : node_sizes) {
      ranks_.push_back(first + position.place);
      first += size;
    }
  }

  void add_to(ScheduleBuilder& builder) const {
    for (const schedule::Step& step : schedule_.steps) {
      for (const auto& send : schedule_.sends(step)) {
        const std::int32_t peer = ranks_[static_cast<std::size_t>(send.peer)];
        if (send.forward) {
          builder.forward(peer, on_rail(send.span));
        } else {
          builder.send(peer, on_rail(send.span));
        }
      }
      for (const auto& receive : schedule_.receives(step)) add_receive(builder, receive);
      builder.end_step();
    }
  }

 private:
  [[nodiscard]] Span on_rail(const Span& span) const {
    Span moved = span;
    if (span.role == Role::input) moved.role = Role::output;
    moved.first_chunk += first_chunk_;
    return moved;
  }

  void add_receive(ScheduleBuilder& builder, const schedule::Transfer& receive) const {
    const std::int32_t peer = ranks_[static_cast<std::size_t>(receive.peer)];
    const bool reduces = receive.action == schedule::Action::reduce;
    const Span into = on_rail(receive.span);
    const Span operand = on_rail(receive.operand);
    if (peer == own_) return reduces ? builder.fold(into, operand) : builder.copy(into, operand);
    if (reduces) return builder.receive_reduce(peer, into, operand);
    builder.receive(peer, into);
  }

  const Schedule& schedule_;
  std::uint32_t first_chunk_;
  std::int32_t own_;
  std::vector<std::int32_t> ranks_;
};

}  // namespace

Schedule hierarchical_all_reduce(const Shape& shape, std::span<const std::int32_t> node_sizes,
                                 const Algorithm& rails) {
  const Position position(shape.rank, node_sizes);
  const Schedule rail = rails.build(rail_shape(shape, position.node, node_sizes.size()));
  const std::uint32_t length = rail.block_chunks;
  const auto first_chunk = [&](std::int32_t place) { return chunk_of(place) * length; };
  const bool has_rail = position.place < position.rails;
  ScheduleBuilder builder(shape, first_chunk(position.rails));

  for (std::int32_t place = 0; place < position.rails; ++place) {
    const std::int32_t owner = position.local.first + place;
    if (owner != shape.rank) builder.send(owner, input(first_chunk(place), length));
  }
  const Span own = output(first_chunk(position.place), length);
  if (has_rail)
    receive_in_rank_order(builder, shape.rank, position.local, own, input(own.first_chunk, length),
                          shape.in_place);
  builder.end_step();

  if (has_rail) Rail(position, node_sizes, rail).add_to(builder);

  for (std::int32_t place = 0; place < position.local.count; ++place) {
    const std::int32_t peer = position.local.first + place;
    if (peer == shape.rank) continue;
    if (has_rail) builder.send(peer, own);
    if (place < position.rails) builder.receive(peer, output(first_chunk(place), length));
  }
  return std::move(builder).finish();
}

schedule::Bound hierarchical_bound(const Shape& shape, std::span<const std::int32_t> node_sizes,
                                   const Algorithm& rails) {
  const schedule::Bound rail = rails.bound(rail_shape(shape, 0, node_sizes.size()));
  const double others = *std::max_element(node_sizes.begin(), node_sizes.end()) - 1;
  const double count = *std::min_element(node_sizes.begin(), node_sizes.end());
  return {.steps = rail.steps + 2,
          .hops = rail.hops + 2,
          .sent = 1 + (rail.sent + others) / count,
          .received = 1 + (rail.received + others) / count,
          .peers = rail.peers + others};
}

}  // namespace hccl::algorithms
