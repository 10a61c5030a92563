// SPDX-License-Identifier: Apache-2.0
// A schedule lists what one rank does in one channel of a collective, in terms of chunks. It has no
// pointer, byte count or data type, so one schedule serves every call of its shape. Schedules are
// pure values.
//
// Steps run one after the other. The transfers of a step progress together, and the step ends when
// all of them are complete. Data arrives at a peer in the order in which it is sent, step after
// step. A rank applies the receives of a step in list order, slice by slice.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hccl::schedule {

enum class Role : std::uint8_t { input, output, scratch };

// A receive applies arriving data to its span. store: writes the data to the span. reduce: sets the
// span to data (op) operand, rounded to the data type. The operation is commutative.
enum class Action : std::uint8_t { store, reduce };

// Consecutive chunks. The number of a chunk determines its elements, and the role determines their
// buffer. In scratch, chunk first_chunk + i is in slot number slot + i, and a slot has room for the
// largest chunk. A span without chunks is a signal: it is sent although it carries no data. Chunks
// without elements are not sent.
struct Span {
  Role role = Role::input;
  std::uint32_t first_chunk = 0;
  std::uint32_t chunk_count = 0;
  std::uint32_t slot = 0;  // of scratch only

  friend bool operator==(const Span&, const Span&) = default;
};

// A send or a receive. A receive whose peer is the rank itself is a copy of the operand to the
// span, or a fold of the operand into the span.
struct Transfer {
  std::int32_t peer = 0;
  Action action = Action::store;  // of a receive
  // If false, a send reads the data that its span held before the step. If true, a send reads the
  // data that the step's receives write to the span. It sends each slice as soon as the last of
  // these receives has written the slice.
  bool forward = false;
  Span span;
  Span operand;  // of a reduction or copy; may equal `span`

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// A range of indices into Schedule::transfers.
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

// The input has Shape::blocks_in_input() blocks, and the output has Shape::blocks_in_output()
// blocks. Every block is cut into block_chunks chunks in the same way, so chunks whose numbers are
// equal modulo block_chunks have the same length.
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
