// SPDX-License-Identifier: Apache-2.0
// A schedule: what one rank does in one channel of a collective, over chunks. It has no pointer, no
// byte count and no data type, so one serves every call of its shape. Pure values.
//
// Steps follow each other. The transfers of a step progress together; the step is over when all
// are. Data to one peer arrives there in the order sent, step after step. A rank's receives of
// a step are applied in the order listed, slice by slice.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hccl::schedule {

enum class Role : std::uint8_t { input, output, scratch };

// The fate of arriving data. store: it becomes the span. reduce: the span becomes it (op) the
// operand, rounded to the data type; the operation is commutative.
enum class Action : std::uint8_t { store, reduce };

// Chunks one after the other. The numbers say which elements; the role, where they are. In
// scratch, chunk first_chunk + i is in slot + i, and each slot holds the largest chunk. No chunks
// at all: a signal, which is sent though it carries nothing. (Chunks without elements are not.)
struct Span {
  Role role = Role::input;
  std::uint32_t first_chunk = 0;
  std::uint32_t chunk_count = 0;
  std::uint32_t slot = 0;  // of scratch only

  friend bool operator==(const Span&, const Span&) = default;
};

// A send, or a receive. A receive whose peer is the rank itself is a copy of the operand to the
// span, or a fold of the operand into the span.
struct Transfer {
  std::int32_t peer = 0;
  Action action = Action::store;  // of a receive
  // A send reads what its span held before the step; one that forwards, what the receives of the
  // step write there, as soon as the last of them has written a slice.
  bool forward = false;
  Span span;
  Span operand;  // of a reduction or copy; may be the span

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// Places in Schedule::transfers.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  friend bool operator==(const Range&, const Range&) = default;
};

struct Step {
  Range sends;
  Range receives;

  friend bool operator==(const Step&, const Step&) = default;
};

// The buffers of a collective that has parts (Shape::blocks_in_input) are that many blocks; those
// of the others are one block, the message. Every block is cut in block_chunks alike, so chunks
// whose numbers are equal modulo block_chunks have the same length.
struct Schedule {
  std::vector<Step> steps;
  std::vector<Transfer> transfers;
  std::uint32_t block_chunks = 0;
  std::uint32_t input_chunks = 0;
  std::uint32_t output_chunks = 0;
  std::uint32_t scratch_chunks = 0;  // slots

  [[nodiscard]] std::span<const Transfer> sends(const Step& step) const {
    return {transfers.data() + step.sends.first, step.sends.count};
  }
  [[nodiscard]] std::span<const Transfer> receives(const Step& step) const {
    return {transfers.data() + step.receives.first, step.receives.count};
  }

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace hccl::schedule
