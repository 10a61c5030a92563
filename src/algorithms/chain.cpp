// SPDX-License-Identifier: Apache-2.0
// Chain: the message passes from rank to rank. Each rank forwards slices as they arrive, so that
// all links are busy by the time the first slice has reached the last rank. M. Barnett et al.,
// "Building a high-performance collective communication library", 1994. A chain takes one step and
// n - 1 hops; each rank sends the message at most once.
#include "algorithms/algorithms.h"
#include "algorithms/numbering.h"
#include "schedule/builder.h"

namespace hccl::algorithms {

using schedule::input;
using schedule::output;
using schedule::ScheduleBuilder;

Schedule chain_broadcast(const Shape& shape) {
  const std::int32_t place = place_after_root(shape);
  const bool last = place + 1 == shape.rank_count;
  ScheduleBuilder builder(shape, 1);
  if (place > 0) {
    builder.receive(rank_at(shape, -1), output(0));
    if (!last) builder.forward(rank_at(shape, 1), output(0));
  } else {
    if (!last) builder.send(rank_at(shape, 1), input(0));
    if (!shape.in_place) builder.copy(output(0), input(0));
  }
  return std::move(builder).finish();
}

// Reduces from the last place to the root.
Schedule chain_reduce(const Shape& shape) {
  const std::int32_t place = place_after_root(shape);
  const bool last = place + 1 == shape.rank_count;
  const auto into = place == 0 ? output(0) : schedule::scratch(0, 0);
  ScheduleBuilder builder(shape, 1);
  if (!last) {
    builder.receive_reduce(rank_at(shape, 1), into, input(0));
    if (place > 0) builder.forward(rank_at(shape, -1), into);
  } else if (place > 0) {
    builder.send(rank_at(shape, -1), input(0));
  } else if (!shape.in_place) {
    builder.copy(output(0), input(0));
  }
  return std::move(builder).finish();
}

}  // namespace hccl::algorithms
