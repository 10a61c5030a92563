// SPDX-License-Identifier: Apache-2.0
// Computes tokens, and locates spans in memory.
#include "proof/symbols.h"

#include "base/text.h"

#include <algorithm>

namespace hccl::proof {
namespace {

// The finaliser of splitmix64: a bijection whose values look random.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

std::uint64_t never_zero(std::uint64_t tree) { return tree == 0 ? 1 : tree; }

}  // namespace

Cell contribution(std::int32_t rank, std::uint32_t chunk, std::uint32_t length) {
  const auto source = static_cast<std::uint64_t>(static_cast<std::uint32_t>(rank));
  const std::uint64_t token = mixed(source << 32 | chunk);
  return {token, never_zero(mixed(token)), length};
}

Cell reduced(const Cell& a, const Cell& b) {
  const auto [low, high] = std::minmax(a.tree, b.tree);  // the operation is commutative
  return {a.sum + b.sum, never_zero(mixed(mixed(low) ^ high)), a.length};
}

Location location_of(const Shape& shape, const Schedule& schedule, const Span& span) {
  if (span.role == Role::scratch) return {Role::scratch, span.slot, span.chunk_count};
  Location place{span.role, span.first_chunk, span.chunk_count};
  if (!shape.aliased()) return place;
  // In place, the shorter buffer is this rank's block of the longer buffer.
  const Role longer = schedule.input_chunks > schedule.output_chunks ? Role::input : Role::output;
  if (schedule.input_chunks != schedule.output_chunks && span.role != longer)
    place.first += static_cast<std::uint32_t>(shape.rank) * schedule.block_chunks;
  place.memory = longer;
  return place;
}

std::size_t SymbolicMemory::cells(const Shape& shape, const Schedule& schedule, Role memory) {
  if (memory == Role::scratch) return schedule.scratch_chunks;
  const bool input_is_longer = schedule.input_chunks > schedule.output_chunks;
  if (memory == Role::input) return shape.aliased() && input_is_longer ? schedule.input_chunks : 0;
  return shape.aliased() && input_is_longer ? 0 : schedule.output_chunks;
}

SymbolicMemory::SymbolicMemory(const Shape& shape, const Schedule& schedule)
    : rank_(shape.rank), block_chunks_(std::max(schedule.block_chunks, 1U)) {
  for (const Role memory : {Role::input, Role::output, Role::scratch})
    stored_[static_cast<std::size_t>(memory)].resize(cells(shape, schedule, memory));
  if (!shape.aliased()) return;
  const Location data = location_of(shape, schedule, {Role::input, 0, schedule.input_chunks, 0});
  for (std::uint32_t i = 0; i < data.count; ++i)
    write(data, i, contribution(rank_, i, i % block_chunks_));
}

Cell SymbolicMemory::read(const Location& place, std::uint32_t index) const {
  const auto& stored = stored_[static_cast<std::size_t>(place.memory)];
  const std::uint32_t cell = place.first + index;
  if (!stored.empty()) return stored[cell];
  return contribution(rank_, cell, cell % block_chunks_);
}

}  // namespace hccl::proof
