// SPDX-License-Identifier: Apache-2.0
// Computes the buffer counts of each collective and the exact result for its known inputs.
#include "shape.h"

#include <algorithm>
#include <compare>
#include <random>

namespace peers {
namespace {

float input_value(int rank, std::size_t index) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 31 + index * 7) % 97);
}

float sum_value(int ranks, std::size_t index) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += input_value(rank, index);
  return sum;
}

float expected_value(const Command& command, int rank, int ranks, std::size_t index,
                     std::size_t part) {
  switch (command.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return sum_value(ranks, index);
    case Collective::broadcast:
      return input_value(0, index);
    case Collective::all_gather:
      return input_value(static_cast<int>(index / part), index % part);
    case Collective::reduce_scatter:
      return sum_value(ranks, static_cast<std::size_t>(rank) * part + index);
    case Collective::all_to_all:
      return input_value(static_cast<int>(index / part),
                         static_cast<std::size_t>(rank) * part + index % part);
    case Collective::send_receive:
      return input_value((rank + ranks - 1) % ranks, index);
    case Collective::barrier:
      break;
  }
  return 0;
}

}  // namespace

Shape shape_of(const Command& command, int rank, int ranks) {
  const std::size_t whole = command.bytes / sizeof(float);
  const std::size_t part = whole / static_cast<std::size_t>(ranks);
  const std::size_t all_parts = part * static_cast<std::size_t>(ranks);
  const std::size_t own = part * static_cast<std::size_t>(rank);
  switch (command.collective) {
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::send_receive:
      return {whole, whole, whole, 0};
    case Collective::all_gather:
      return {part, all_parts, part, own};
    case Collective::reduce_scatter:
      return {all_parts, part, part, own};
    case Collective::reduce:
      return {whole, rank == 0 ? whole : 0, whole, 0};
    case Collective::all_to_all:
      return {all_parts, all_parts, part, 0};
    case Collective::barrier:
      break;
  }
  return {};
}

std::size_t buffer_count(const Shape& shape) {
  return std::max(shape.send_count, shape.recv_count);
}

std::vector<float> make_input(const Shape& shape, int rank) {
  std::vector<float> input(shape.send_count);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = input_value(rank, i);
  return input;
}

void place_input(const Command& command, int rank, int ranks, std::span<float> send,
                 std::span<float> recv) {
  const Shape shape = shape_of(command, rank, ranks);
  const std::vector<float> input = make_input(shape, rank);
  std::fill(recv.begin(), recv.end(), kPoison);
  const bool has_root =
      command.collective == Collective::broadcast || command.collective == Collective::reduce;
  const bool at_output = command.in_place && (!has_root || rank == 0);
  const bool gathers = command.collective == Collective::all_gather;
  const std::size_t offset = at_output && gathers ? shape.in_place_offset : 0;
  std::copy(input.begin(), input.end(), (at_output ? recv : send).subspan(offset).begin());
}

void fill_for_timing(const Command& command, int rank, std::span<float> buffer) {
  const bool sums = command.collective == Collective::all_reduce ||
                    command.collective == Collective::reduce_scatter ||
                    command.collective == Collective::reduce;
  if (sums && command.in_place) {
    std::ranges::fill(buffer, 0.0F);
    return;
  }
  std::minstd_rand random(static_cast<unsigned>(rank) + 1);
  for (float& value : buffer) value = 1.0F + static_cast<float>(random() & 0x7fffffU) * 0x1p-23F;
}

std::uint64_t count_wrong(const Command& command, int rank, int ranks,
                          std::span<const float> output) {
  const std::size_t part = shape_of(command, rank, ranks).call_count;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const auto order = output[i] <=> expected_value(command, rank, ranks, i, part);
    wrong += order == std::partial_ordering::equivalent ? 0U : 1U;  // a NaN is wrong
  }
  return wrong;
}

}  // namespace peers
