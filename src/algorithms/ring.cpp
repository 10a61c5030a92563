// SPDX-License-Identifier: Apache-2.0
// Ring: each rank exchanges data only with its two neighbours. P. Patarasuk and X. Yuan, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations", 2009. A reduce-scatter or an
// all-gather takes n - 1 steps, each of which moves one of n chunks. An all-reduce takes twice as
// many steps; no algorithm moves less data.
#include "algorithms/algorithms.h"
#include "algorithms/numbering.h"
#include "schedule/builder.h"

namespace hccl::algorithms {

using schedule::input;
using schedule::output;
using schedule::ScheduleBuilder;
using schedule::scratch;

// In step s of the first half, rank r sends chunk r - s - 1 and receives chunk r - s - 2. Chunk r
// therefore starts at rank r + 1 and reaches rank r last, fully reduced.
Schedule ring_all_reduce(const Shape& shape) {
  const std::int32_t next = rank_at(shape, 1);
  const std::int32_t previous = rank_at(shape, -1);
  const auto chunk = [&](std::int32_t behind) { return chunk_of(rank_at(shape, -behind)); };
  ScheduleBuilder builder(shape, shape.ranks());
  if (shape.rank_count == 1 && !shape.in_place) builder.copy(output(0), input(0));
  for (std::int32_t step = 0; step + 1 < shape.rank_count; ++step) {
    const std::uint32_t arriving = chunk(step + 2);
    builder.send(next, step == 0 ? input(chunk(1)) : output(chunk(step + 1)));
    builder.receive_reduce(previous, output(arriving), input(arriving));
    builder.end_step();
  }
  for (std::int32_t step = 0; step + 1 < shape.rank_count; ++step) {
    builder.send(next, output(chunk(step)));
    builder.receive(previous, output(chunk(step + 1)));
    builder.end_step();
  }
  return std::move(builder).finish();
}

// The first half of the ring all-reduce. Partial results go to scratch, because the output has room
// for only one block.
Schedule ring_reduce_scatter(const Shape& shape) {
  const auto block = [&](std::int32_t behind) { return chunk_of(rank_at(shape, -behind)); };
  const auto slot = [](std::int32_t step) { return static_cast<std::uint32_t>(step % 2); };
  ScheduleBuilder builder(shape, 1);
  if (shape.rank_count == 1 && !shape.in_place) builder.copy(output(0), input(0));
  for (std::int32_t step = 0; step + 1 < shape.rank_count; ++step) {
    const std::uint32_t leaving = block(step + 1);
    const std::uint32_t arriving = block(step + 2);
    const bool last = step + 2 == shape.rank_count;
    builder.send(rank_at(shape, 1), step == 0 ? input(leaving) : scratch(slot(step - 1), leaving));
    builder.receive_reduce(rank_at(shape, -1), last ? output(0) : scratch(slot(step), arriving),
                           input(arriving));
    builder.end_step();
  }
  return std::move(builder).finish();
}

Schedule ring_all_gather(const Shape& shape) {
  const auto block = [&](std::int32_t behind) { return chunk_of(rank_at(shape, -behind)); };
  ScheduleBuilder builder(shape, 1);
  if (!shape.in_place) builder.copy(output(block(0)), input(0));
  for (std::int32_t step = 0; step + 1 < shape.rank_count; ++step) {
    builder.send(rank_at(shape, 1), step == 0 ? input(0) : output(block(step)));
    builder.receive(rank_at(shape, -1), output(block(step + 1)));
    builder.end_step();
  }
  return std::move(builder).finish();
}

}  // namespace hccl::algorithms
