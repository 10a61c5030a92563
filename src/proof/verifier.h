// SPDX-License-Identifier: Apache-2.0
// Proves properties of a collective's schedules in one channel, on all ranks, without running them:
//  - well formed: transfers name only ranks and chunks that exist, no receive writes to the input,
//    and all schedules divide the message in the same way;
//  - completes: the schedules complete even without buffering, that is, if a transfer takes place
//    only while sender and receiver are both at the step that contains it. Hence no choice of
//    transport, credits or message lengths can cause a deadlock;
//  - exactly once: each result contains each of its contributions exactly once, and nothing else;
//    no rank leaves a barrier before all ranks have arrived;
//  - same bits: a result that several ranks hold was reduced in the same tree on each of them;
//  - no hazard: although transfers proceed slice by slice, no data is overwritten while it is being
//    sent, and none is read before it is written, even if input and output share memory;
//  - within bound: the steps, data and peers of each rank, and the hops of the collective, do not
//    exceed the bound.
#pragma once

#include "schedule/bound.h"
#include "schedule/schedule.h"
#include "schedule/shape.h"

#include <optional>
#include <string>

namespace hccl::proof {

using schedule::Bound;
using schedule::Schedule;
using schedule::Shape;

enum class Property : std::uint8_t {
  well_formed,
  completes,
  exactly_once,
  same_bits,
  no_hazard,
  within_bound
};

// A property that does not hold. The text names the rank, the step and the chunk where these apply.
struct Violation {
  Property property = Property::well_formed;
  std::string text;
};

// Returns the first violation that it finds, or nothing. `shapes` and `schedules` have one
// element per rank, in rank order. Shape::in_place may differ between ranks.
[[nodiscard]] std::optional<Violation> verify(std::span<const Shape> shapes,
                                              std::span<const Schedule> schedules,
                                              const Bound& bound);

}  // namespace hccl::proof
