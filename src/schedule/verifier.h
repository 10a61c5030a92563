// SPDX-License-Identifier: Apache-2.0
// Proves a collective's schedules, of all ranks of one channel, without running them:
//  - completes: with no buffering at all, a transfer taking place only while both ranks stand at
//    its step; so there is no deadlock, whatever the transport, its credits and the lengths;
//  - exactly once: every contribution is in every result it belongs to, once, and nowhere else;
//  - same bits: what several ranks hold was reduced in the same tree on all of them;
//  - no hazard: nothing is overwritten while it is sent, nor read before it is written, out of
//    place and in place, transfers going on slice by slice;
//  - within bound: steps, data and peers of each rank.
#pragma once

#include "schedule/schedule.h"
#include "schedule/shape.h"

#include <optional>
#include <string>

namespace hccl::schedule {

enum class Claim : std::uint8_t {
  well_formed,
  completes,
  exactly_once,
  same_bits,
  no_hazard,
  within_bound
};

// Why a claim does not hold. The text names rank, step and chunk.
struct Refutation {
  Claim claim = Claim::well_formed;
  std::string text;
};

// Bounds that no rank of a schedule exceeds. Data is in multiples of the channel's part of a block:
// of the message, or of one rank's part where the buffers have such parts. hops: transfers of which
// each waits for the one before, because it forwards what that brings or stands in a later step of
// a rank; the number of latencies that the collective takes.
struct Bound {
  double steps = 0;
  double hops = 0;
  double sent = 0;
  double received = 0;
  double peers = 0;
};

// shapes and schedules: of rank 0, 1, ... Ranks may differ in in_place. Nothing where all holds.
[[nodiscard]] std::optional<Refutation> refute(std::span<const Shape> shapes,
                                               std::span<const Schedule> schedules,
                                               const Bound& bound);

}  // namespace hccl::schedule
