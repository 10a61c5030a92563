// SPDX-License-Identifier: Apache-2.0
// A rank's memory in a proof. Holds two fingerprints of each chunk instead of its data.
#pragma once

#include "schedule/schedule.h"
#include "schedule/shape.h"

#include <array>
#include <cstddef>
#include <string>

namespace hccl::proof {

using schedule::Role;
using schedule::Schedule;
using schedule::Shape;
using schedule::Span;

// The fingerprints of a chunk. `sum` is the sum of the random tokens of all contributions, so that
// a missing or doubled contribution is detected. `tree` is a hash of the tree in which the
// contributions were reduced: results with the same `tree` are equal bit for bit. A `tree` of 0
// means that the chunk has not been written. `length` is the number of the chunk in its block,
// which determines the chunk's length.
struct Cell {
  std::uint64_t sum = 0;
  std::uint64_t tree = 0;
  std::uint32_t length = 0;
};

[[nodiscard]] Cell contribution(std::int32_t rank, std::uint32_t chunk, std::uint32_t length);
[[nodiscard]] Cell reduced(const Cell& a, const Cell& b);

// The memory that a span covers. In place, input and output share memory.
struct Location {
  Role memory = Role::input;
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  friend bool operator==(const Location&, const Location&) = default;
};

[[nodiscard]] Location location_of(const Shape& shape, const Schedule& schedule, const Span& span);

class SymbolicMemory {
 public:
  SymbolicMemory(const Shape& shape, const Schedule& schedule);

  // Returns the number of cells that are stored for `memory`. The input of an out-of-place call has
  // none, because it never changes. In place, the longer buffer has the cells of both; if both are
  // equally long, the output has them.
  [[nodiscard]] static std::size_t cells(const Shape& shape, const Schedule& schedule, Role memory);

  [[nodiscard]] Cell read(const Location& place, std::uint32_t index) const;
  void write(const Location& place, std::uint32_t index, const Cell& cell) {
    stored_[static_cast<std::size_t>(place.memory)][place.first + index] = cell;
  }

 private:
  std::int32_t rank_;
  std::uint32_t block_chunks_;
  std::array<std::vector<Cell>, 3> stored_;
};

}  // namespace hccl::proof
