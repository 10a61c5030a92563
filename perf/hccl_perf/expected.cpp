// SPDX-License-Identifier: Apache-2.0
// Computes reference results. Computes those of reductions in blocks that fit in the L1 cache.
#include "expected.h"

#include "element_forms.h"
#include "input_data.h"
#include "pairs.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace hccl_perf {
namespace {

// Applies the reduction to two values. Sums and products of integers wrap.
template <hcclRedOp_t operation, class Value>
Value combine(Value left, Value right) {
  if constexpr (operation == hcclMin) return right < left ? right : left;
  if constexpr (operation == hcclMax) return left < right ? right : left;
  if constexpr (std::is_floating_point_v<Value>) {
    return operation == hcclProd ? left * right : left + right;
  } else {
    using Unsigned = std::make_unsigned_t<Value>;
    const auto a = static_cast<std::uint64_t>(static_cast<Unsigned>(left));
    const auto b = static_cast<std::uint64_t>(static_cast<Unsigned>(right));
    if constexpr (operation == hcclEmulationBitAnd) return static_cast<Value>(a & b);
    if constexpr (operation == hcclEmulationBitOr) return static_cast<Value>(a | b);
    if constexpr (operation == hcclEmulationBitXor) return static_cast<Value>(a ^ b);
    return static_cast<Value>(operation == hcclProd ? a * b : a + b);
  }
}

template <class Value>
Value average(Value sum, int ranks) {
  const auto count = static_cast<Value>(ranks);
  if constexpr (std::is_floating_point_v<Value>) return sum * (Value{1} / count);
  return static_cast<Value>(sum / count);
}

template <class Form, hcclRedOp_t operation>
void reduce_block(const Expectation& expectation, std::uint64_t first, std::size_t count,
                  void* out) {
  using Accumulator = typename Form::Accumulator;
  std::array<Accumulator, kReductionBlock> total;
  std::array<typename Form::Stored, kReductionBlock> input;
  for (int rank = 0; rank < expectation.ranks; ++rank) {
    fill_input(expectation.type, {rank, expectation.run}, first, count, input.data());
    for (std::size_t i = 0; i < count; ++i) {
      const Accumulator value = Form::load(input[i]);
      total[i] = rank == 0 ? value : combine<operation>(total[i], value);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (operation == hcclAvg) total[i] = average(total[i], expectation.ranks);
    input[i] = Form::store(total[i]);
  }
  std::memcpy(out, input.data(), count * sizeof(input[0]));
}

template <class Form>
void reduce_as(const Expectation& expectation, std::uint64_t first, std::size_t count, void* out) {
  const hcclRedOp_t operation = expectation.reduction.code;
  if constexpr (std::is_integral_v<typename Form::Accumulator>) {
    if (operation == hcclEmulationBitAnd)
      return reduce_block<Form, hcclEmulationBitAnd>(expectation, first, count, out);
    if (operation == hcclEmulationBitOr)
      return reduce_block<Form, hcclEmulationBitOr>(expectation, first, count, out);
    if (operation == hcclEmulationBitXor)
      return reduce_block<Form, hcclEmulationBitXor>(expectation, first, count, out);
  }
  switch (operation) {
    case hcclProd:
      return reduce_block<Form, hcclProd>(expectation, first, count, out);
    case hcclMin:
      return reduce_block<Form, hcclMin>(expectation, first, count, out);
    case hcclMax:
      return reduce_block<Form, hcclMax>(expectation, first, count, out);
    case hcclAvg:
      return reduce_block<Form, hcclAvg>(expectation, first, count, out);
    default:
      return reduce_block<Form, hcclSum>(expectation, first, count, out);
  }
}

void reduce_one_block(const Expectation& expectation, std::uint64_t first, std::size_t count,
                      void* out) {
  with_form(expectation.type.code,
            [&](auto form) { reduce_as<decltype(form)>(expectation, first, count, out); });
}

// Reduces the inputs of all ranks. Writes elements [first, first + count) of the result to `out`.
void reduce_inputs(const Expectation& expectation, std::uint64_t first, std::size_t count,
                   void* out) {
  auto* bytes = static_cast<std::byte*>(out);
  while (count > 0) {
    const std::size_t block = std::min(count, kReductionBlock);
    reduce_one_block(expectation, first, block, bytes);
    first += block;
    count -= block;
    bytes += block * expectation.type.size;
  }
}

// Writes elements [first, first + count) of a concatenation to `out`. The concatenation consists of
// elements [offset, offset + part) of each rank's input.
void gather_inputs(const Expectation& expectation, std::uint64_t part, std::uint64_t offset,
                   std::uint64_t first, std::size_t count, void* out) {
  auto* bytes = static_cast<std::byte*>(out);
  while (count > 0) {
    const std::uint64_t within = first % part;
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(count, part - within));
    fill_input(expectation.type, {static_cast<int>(first / part), expectation.run}, offset + within,
               piece, bytes);
    first += piece;
    count -= piece;
    bytes += piece * expectation.type.size;
  }
}

}  // namespace

std::optional<std::uint64_t> first_reduced_input(const Expectation& expectation) {
  const CollectiveKind kind = expectation.collective->kind;
  if (kind == CollectiveKind::reduce_scatter)
    return static_cast<std::uint64_t>(expectation.rank) * expectation.counts.receive;
  const bool at_root = kind == CollectiveKind::reduce && expectation.rank == expectation.root;
  if (kind == CollectiveKind::all_reduce || at_root) return 0;
  return std::nullopt;
}

void fill_expected(const Expectation& expectation, std::uint64_t first, std::size_t count,
                   void* out) {
  if (const auto input = first_reduced_input(expectation))
    return reduce_inputs(expectation, *input + first, count, out);
  const std::uint64_t part = expectation.counts.receive;
  const auto ranks = static_cast<std::uint64_t>(expectation.ranks);
  const auto rank = static_cast<std::uint64_t>(expectation.rank);
  const auto input_of = [&](int source) {
    fill_input(expectation.type, {source, expectation.run}, first, count, out);
  };
  const auto poison = [&] { std::memset(out, kPoison, count * expectation.type.size); };
  switch (expectation.collective->kind) {
    case CollectiveKind::reduce:
      // This rank is not the root: its buffer stays unchanged.
      return expectation.in_place ? input_of(expectation.rank) : poison();
    case CollectiveKind::all_gather:
      return gather_inputs(expectation, expectation.counts.send, 0, first, count, out);
    case CollectiveKind::all_to_all:
      return gather_inputs(expectation, part / ranks, rank * (part / ranks), first, count, out);
    case CollectiveKind::send_receive:
      return input_of(static_cast<int>((rank + ranks - 1) % ranks));
    case CollectiveKind::message_rate:
      if (in_first_half(expectation.rank, expectation.ranks)) return poison();
      [[fallthrough]];
    case CollectiveKind::ping_pong:
    case CollectiveKind::bidirectional:
      return input_of(partner_of(expectation.rank, expectation.ranks));
    case CollectiveKind::broadcast:
      return input_of(expectation.root);
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
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
