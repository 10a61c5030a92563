// SPDX-License-Identifier: Apache-2.0
// Direct: in one step, every rank sends its data directly to the ranks that need it. Reductions
// fold in rank order. An all-reduce takes two steps: a reduce-scatter and an all-gather. In the
// one-shot all-reduce, every rank sends the whole message to every other rank. That takes one hop
// instead of two, but moves n / 2 times as much data. If the one-shot all-reduce is in place, a
// second step copies the result.
#include "algorithms/algorithms.h"
#include "algorithms/numbering.h"
#include "algorithms/rank_order.h"

namespace hccl::algorithms {

using schedule::input;
using schedule::output;
using schedule::ScheduleBuilder;

namespace {

RankGroup everybody(const Shape& shape) { return {0, shape.rank_count}; }

// Calls the function for each peer, starting with the next rank, so that not all ranks begin with
// the same peer.
template <class Function>
void for_peers(const Shape& shape, Function function) {
  for (std::int32_t i = 1; i < shape.rank_count; ++i) function(rank_at(shape, i));
}

}  // namespace

// In place, the input is still being sent when the reduction begins, so the sum goes to scratch.
Schedule one_shot_all_reduce(const Shape& shape) {
  ScheduleBuilder builder(shape, 1);
  const auto sum = shape.in_place ? schedule::scratch(0, 0) : output(0);
  if (shape.in_place && shape.rank_count == 1) return std::move(builder).finish();
  for_peers(shape, [&](std::int32_t peer) { builder.send(peer, input(0)); });
  receive_in_rank_order(builder, shape.rank, everybody(shape), sum, input(0), false);
  builder.end_step();
  if (shape.in_place) builder.copy(output(0), sum);
  return std::move(builder).finish();
}

Schedule direct_all_reduce(const Shape& shape) {
  const std::uint32_t own = chunk_of(shape.rank);
  ScheduleBuilder builder(shape, shape.ranks());
  for_peers(shape, [&](std::int32_t peer) { builder.send(peer, input(chunk_of(peer))); });
  receive_in_rank_order(builder, shape.rank, everybody(shape), output(own), input(own),
                        shape.in_place);
  builder.end_step();
  for_peers(shape, [&](std::int32_t peer) {
    builder.send(peer, output(own));
    builder.receive(peer, output(chunk_of(peer)));
  });
  return std::move(builder).finish();
}

Schedule direct_reduce_scatter(const Shape& shape) {
  ScheduleBuilder builder(shape, 1);
  for_peers(shape, [&](std::int32_t peer) { builder.send(peer, input(chunk_of(peer))); });
  receive_in_rank_order(builder, shape.rank, everybody(shape), output(0),
                        input(chunk_of(shape.rank)), shape.in_place);
  return std::move(builder).finish();
}

Schedule direct_all_gather(const Shape& shape) {
  ScheduleBuilder builder(shape, 1);
  if (!shape.in_place) builder.copy(output(chunk_of(shape.rank)), input(0));
  for_peers(shape, [&](std::int32_t peer) {
    builder.send(peer, input(0));
    builder.receive(peer, output(chunk_of(peer)));
  });
  return std::move(builder).finish();
}

Schedule direct_broadcast(const Shape& shape) {
  ScheduleBuilder builder(shape, 1);
  if (shape.rank == shape.root) {
    for_peers(shape, [&](std::int32_t peer) { builder.send(peer, input(0)); });
    if (!shape.in_place) builder.copy(output(0), input(0));
  } else {
    builder.receive(shape.root, output(0));
  }
  return std::move(builder).finish();
}

Schedule direct_reduce(const Shape& shape) {
  ScheduleBuilder builder(shape, 1);
  if (shape.rank == shape.root) {
    receive_in_rank_order(builder, shape.rank, everybody(shape), output(0), input(0),
                          shape.in_place);
  } else {
    builder.send(shape.root, input(0));
  }
  return std::move(builder).finish();
}

}  // namespace hccl::algorithms
