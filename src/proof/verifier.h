// SPDX-License-Identifier: Apache-2.0
// Proves properties of the schedules of all ranks of one channel of a collective, without running
// them:
//  - completes: the schedules complete even without buffering, where a transfer takes place only
//    while both ranks are at its step. Hence there is no deadlock, whatever the transport, its
//    credits and the lengths;
//  - exactly once: each result contains every contribution that belongs to it once, and no others;
//  - same bits: results that several ranks hold were reduced in the same tree on all of them;
//  - no hazard: no data is overwritten while it is sent, or read before it is written, out of place
//    and in place, while transfers proceed slice by slice;
//  - within bound: each rank's steps, data and peers do not exceed the bound.
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

// A property that does not hold. The text names the rank, the step and the chunk.
struct Violation {
  Property property = Property::well_formed;
  std::string text;
};

// Returns the first property that does not hold, or nothing. `shapes` and `schedules` belong to
// ranks 0, 1, and so on, which may differ in in_place.
[[nodiscard]] std::optional<Violation> verify(std::span<const Shape> shapes,
                                              std::span<const Schedule> schedules,
                                              const Bound& bound);

}  // namespace hccl::proof
