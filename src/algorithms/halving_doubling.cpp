// SPDX-License-Identifier: Apache-2.0
// Halving and doubling on any number of ranks: J. L. Träff, "Optimal, non-pipelined reduce-scatter
// and allreduce algorithms", arXiv:2410.14234, 2024. Each step of the reduce-scatter halves the
// number of chunks that a rank still has to reduce; the all-gather reverses these steps. The
// reduce-scatter and the all-gather each take ceil(log2 n) steps and move all chunks but one.
#include "algorithms/algorithms.h"
#include "algorithms/numbering.h"
#include "schedule/builder.h"

#include <algorithm>
#include <vector>

namespace hccl::algorithms {

using schedule::input;
using schedule::output;
using schedule::ScheduleBuilder;
using schedule::Span;

namespace {

// Splits the `count` chunks from place `first` onwards, which may wrap around, into one or two
// contiguous runs, and calls function(chunk, place, count) for each run. The place of a chunk is
// its distance from the rank's own chunk, modulo the number of chunks.
template <class Function>
void for_runs(const Shape& shape, std::int32_t first, std::int32_t count, Function function) {
  const std::int32_t begin = rank_at(shape, first);
  const std::int32_t until_end = std::min(count, shape.rank_count - begin);
  function(chunk_of(begin), chunk_of(first), chunk_of(until_end));
  if (count > until_end) function(0U, chunk_of(first + until_end), chunk_of(count - until_end));
}

// Returns the number of chunks left to reduce before the first step and after each step: n, n / 2
// rounded up, ... 1.
std::vector<std::int32_t> sizes_of(std::int32_t rank_count) {
  std::vector<std::int32_t> sizes{rank_count};
  while (sizes.back() > 1) sizes.push_back((sizes.back() + 1) / 2);
  return sizes;
}

// Adds the steps of a reduce-scatter. After a step, the rank still has to reduce the `left` chunks
// that start at place 0. In the step, the rank sends its other chunks to the rank at distance
// `left`, and receives as many chunks, which start at place 0, from the rank at distance -left.
// held(chunk, place, count) returns the span that holds the partial results; the last step writes
// to `result`. If the number of chunks before the step is odd, the step neither sends nor receives
// the chunk at place `left` - 1. If `keep_odd`, the first step copies this chunk from the input to
// the partial results.
template <class Held>
void halve(ScheduleBuilder& builder, const Shape& shape, Held held, const Span& result,
           bool keep_odd) {
  const auto sizes = sizes_of(shape.rank_count);
  for (std::size_t step = 0; step + 1 < sizes.size(); ++step) {
    const std::int32_t left = sizes[step + 1];
    const std::int32_t leaving = sizes[step] - left;
    const bool first = step == 0;
    for_runs(shape, left, leaving,
             [&](std::uint32_t chunk, std::uint32_t place, std::uint32_t count) {
               builder.send(rank_at(shape, left),
                            first ? input(chunk, count) : held(chunk, place, count));
             });
    for_runs(shape, 0, leaving, [&](std::uint32_t chunk, std::uint32_t place, std::uint32_t count) {
      const Span partial = held(chunk, place, count);
      builder.receive_reduce(rank_at(shape, -left), left == 1 ? result : partial,
                             first ? input(chunk, count) : partial);
    });
    if (first && keep_odd && leaving < left) {
      const std::uint32_t odd = chunk_of(rank_at(shape, leaving));
      builder.copy(held(odd, chunk_of(leaving), 1), input(odd));
    }
    builder.end_step();
  }
}

// Adds the steps of an all-gather, which reverse those of halve(). `own` is the rank's own chunk.
void double_up(ScheduleBuilder& builder, const Shape& shape, const Span& own) {
  const auto sizes = sizes_of(shape.rank_count);
  for (std::size_t step = sizes.size() - 1; step > 0; --step) {
    const std::int32_t held = sizes[step];
    const std::int32_t arriving = sizes[step - 1] - held;
    for_runs(shape, 0, arriving, [&](std::uint32_t chunk, std::uint32_t, std::uint32_t count) {
      builder.send(rank_at(shape, -held), held == 1 ? own : output(chunk, count));
    });
    for_runs(shape, held, arriving, [&](std::uint32_t chunk, std::uint32_t, std::uint32_t count) {
      builder.receive(rank_at(shape, held), output(chunk, count));
    });
    builder.end_step();
  }
}

}  // namespace

Schedule halving_doubling_all_reduce(const Shape& shape) {
  ScheduleBuilder builder(shape, shape.ranks());
  const Span own = output(chunk_of(shape.rank));
  if (shape.rank_count == 1 && !shape.in_place) builder.copy(own, input(0));
  halve(
      builder, shape,
      [](std::uint32_t chunk, std::uint32_t, std::uint32_t count) { return output(chunk, count); },
      own, !shape.in_place);
  double_up(builder, shape, own);
  return std::move(builder).finish();
}

Schedule halving_reduce_scatter(const Shape& shape) {
  ScheduleBuilder builder(shape, 1);
  if (shape.rank_count == 1 && !shape.in_place) builder.copy(output(0), input(0));
  halve(
      builder, shape,
      [](std::uint32_t chunk, std::uint32_t place, std::uint32_t count) {
        return schedule::scratch(place, chunk, count);
      },
      output(0), true);
  return std::move(builder).finish();
}

Schedule doubling_all_gather(const Shape& shape) {
  ScheduleBuilder builder(shape, 1);
  if (!shape.in_place) builder.copy(output(chunk_of(shape.rank)), input(0));
  double_up(builder, shape, input(0));
  return std::move(builder).finish();
}

}  // namespace hccl::algorithms
