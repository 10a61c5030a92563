// SPDX-License-Identifier: Apache-2.0
// Reference results. Works in blocks that stay in the first-level cache.
#include "expected.h"

#include "input_data.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace hccl_perf {
namespace {

constexpr std::size_t kBlock = 1024;  // elements

float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Rounds to nearest, ties to even. The values here are never NaN and never near the largest float.
std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

template <class Value>
Value combine(hcclRedOp_t operation, Value left, Value right) {
  if (operation == hcclMin) return right < left ? right : left;
  if (operation == hcclMax) return left < right ? right : left;
  return left + right;
}

// How a type is stored, accumulated and loaded.
struct Float32 {
  using Stored = float;
  using Accumulator = float;
  static Accumulator load(Stored value) { return value; }
  static Stored store(Accumulator value) { return value; }
};
struct Bfloat16 {
  using Stored = std::uint16_t;
  using Accumulator = float;
  static Accumulator load(Stored value) { return from_bfloat16(value); }
  static Stored store(Accumulator value) { return to_bfloat16(value); }
};
// Sums wrap, so they are made of unsigned words; the order of min and max is that of signed ones.
struct Int32Sum {
  using Stored = std::uint32_t;
  using Accumulator = std::uint32_t;
  static Accumulator load(Stored value) { return value; }
  static Stored store(Accumulator value) { return value; }
};
struct Int32Order {
  using Stored = std::int32_t;
  using Accumulator = std::int32_t;
  static Accumulator load(Stored value) { return value; }
  static Stored store(Accumulator value) { return value; }
};

template <class Form, hcclRedOp_t operation>
void reduce_block(const Expectation& expectation, std::uint64_t first, std::size_t count,
                  void* out) {
  using Accumulator = typename Form::Accumulator;
  std::array<Accumulator, kBlock> total;
  std::array<typename Form::Stored, kBlock> input;
  for (int rank = 0; rank < expectation.ranks; ++rank) {
    fill_input(expectation.type, {rank, expectation.run}, first, count, input.data());
    for (std::size_t i = 0; i < count; ++i) {
      const Accumulator value = Form::load(input[i]);
      total[i] = rank == 0 ? value : combine<Accumulator>(operation, total[i], value);
    }
  }
  for (std::size_t i = 0; i < count; ++i) input[i] = Form::store(total[i]);
  std::memcpy(out, input.data(), count * sizeof(input[0]));
}

template <class Form>
void reduce_as(const Expectation& expectation, std::uint64_t first, std::size_t count, void* out) {
  if (expectation.reduction.code == hcclMin)
    return reduce_block<Form, hcclMin>(expectation, first, count, out);
  if (expectation.reduction.code == hcclMax)
    return reduce_block<Form, hcclMax>(expectation, first, count, out);
  reduce_block<Form, hcclSum>(expectation, first, count, out);
}

// Elements [first, first + count) of the reduction of all ranks' inputs.
void reduce_inputs(const Expectation& expectation, std::uint64_t first, std::size_t count,
                   void* out) {
  auto* bytes = static_cast<std::byte*>(out);
  const DataType& type = expectation.type;
  while (count > 0) {
    const std::size_t block = std::min(count, kBlock);
    if (type.code == hcclFloat32) {
      reduce_as<Float32>(expectation, first, block, bytes);
    } else if (type.code == hcclBfloat16) {
      reduce_as<Bfloat16>(expectation, first, block, bytes);
    } else if (expectation.reduction.code == hcclSum) {
      reduce_as<Int32Sum>(expectation, first, block, bytes);
    } else {
      reduce_as<Int32Order>(expectation, first, block, bytes);
    }
    first += block;
    count -= block;
    bytes += block * type.size;
  }
}

// Elements [first, first + count) of all ranks' inputs one after the other.
void gather_inputs(const Expectation& expectation, std::uint64_t first, std::size_t count,
                   void* out) {
  auto* bytes = static_cast<std::byte*>(out);
  const std::uint64_t part = expectation.counts.send;
  while (count > 0) {
    const std::uint64_t offset = first % part;
    const std::size_t piece =
        static_cast<std::size_t>(std::min<std::uint64_t>(count, part - offset));
    fill_input(expectation.type, {static_cast<int>(first / part), expectation.run}, offset, piece,
               bytes);
    first += piece;
    count -= piece;
    bytes += piece * expectation.type.size;
  }
}

}  // namespace

void fill_expected(const Expectation& expectation, std::uint64_t first, std::size_t count,
                   void* out) {
  const std::uint64_t part = expectation.counts.receive;
  switch (expectation.collective->kind) {
    case CollectiveKind::all_reduce:
      return reduce_inputs(expectation, first, count, out);
    case CollectiveKind::reduce_scatter:
      return reduce_inputs(expectation, static_cast<std::uint64_t>(expectation.rank) * part + first,
                           count, out);
    case CollectiveKind::all_gather:
      return gather_inputs(expectation, first, count, out);
    case CollectiveKind::broadcast:
      return fill_input(expectation.type, {expectation.root, expectation.run}, first, count, out);
    case CollectiveKind::barrier:
      return;
  }
}

std::uint64_t count_differences(const void* found, const void* expected, std::size_t count,
                                std::size_t size) {
  if (std::memcmp(found, expected, count * size) == 0) return 0;
  const auto* left = static_cast<const std::byte*>(found);
  const auto* right = static_cast<const std::byte*>(expected);
  std::uint64_t differences = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(left + i * size, right + i * size, size) != 0) ++differences;
  }
  return differences;
}

}  // namespace hccl_perf
