// SPDX-License-Identifier: Apache-2.0
// Implements the functions of reduce.h. Selects the instruction set once per process and a kernel
// for each call.
#include "reduce/reduce.h"

#include "reduce/float_environment.h"
#include "reduce/kernels.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace hccl::reduce {
namespace {

// Each block is copied to all destinations in turn, so that every copy but the first reads the
// block from the nearest cache.
constexpr std::size_t kCopyBlock = 4096;

const KernelTable& kernels() noexcept {
  static const KernelTable table = best_kernels();
  return table;
}

void copy_cached(const std::byte* source, std::span<std::byte* const> destinations,
                 std::size_t bytes) noexcept {
  const std::size_t block = destinations.size() == 1 ? bytes : kCopyBlock;
  for (std::size_t offset = 0; offset < bytes; offset += block) {
    const std::size_t length = bytes - offset < block ? bytes - offset : block;
    for (std::byte* destination : destinations) {
      if (destination != source) {
        std::memcpy(destination + offset, source + offset, length);
      }
    }
  }
}

void copy_interleaved(const std::byte* source, std::span<std::byte* const> destinations,
                      std::size_t bytes) noexcept {
  std::array<std::byte*, 64> others;  // destinations of one group, without the source
  while (!destinations.empty()) {
    const auto turn = destinations.first(std::min(destinations.size(), others.size()));
    const auto end = std::ranges::remove_copy(turn, others.begin(), source).out;
    const auto count = static_cast<std::size_t>(end - others.begin());
    kernels().walks.interleaved_copy(source, others.data(), count, bytes);
    destinations = destinations.subspan(turn.size());
  }
}

}  // namespace

const char* operation_name(hcclRedOp_t operation) noexcept {
  switch (operation) {
    case hcclSum:
      return "sum";
    case hcclProd:
      return "prod";
    case hcclMin:
      return "min";
    case hcclMax:
      return "max";
    case hcclAvg:
      return "avg";
    case hcclOpNone:
      return "none";
  }
  if (operation == hcclEmulationBitAnd) return "bitand";
  if (operation == hcclEmulationBitOr) return "bitor";
  if (operation == hcclEmulationBitXor) return "bitxor";
  return "unknown operation";
}

bool supports(hcclDataType_t type, hcclRedOp_t operation) noexcept {
  if (is_bitwise(operation)) return data_type(type).is_integer;
  return element_size(type) != 0 && operation >= hcclSum && operation < hcclOpNone;
}

void reduce_tile(hcclDataType_t type, hcclRedOp_t operation,
                 std::span<const std::byte* const> sources,
                 std::span<std::byte* const> destinations, std::size_t count,
                 StorePolicy policy) noexcept {
  assert(supports(type, operation) && !sources.empty());
  const std::size_t bytes = count * element_size(type);
  if (sources.size() == 1) {
    copy_tile(sources[0], destinations, bytes, policy);
    return;
  }
  const FloatEnvironment environment;
  const KernelTable& table = kernels();
  const FoldOperands operands{sources.data(), sources.size(), destinations.data(),
                              destinations.size()};
  const FoldKernel& fold = table.fold(type, operation);
  if (bytes < FoldKernel::kBlockUnit) {
    fold.range(operands, 0, bytes);
  } else {
    table.walks.reduce(fold, operands, bytes, policy);
  }
}

void copy_tile(const std::byte* source, std::span<std::byte* const> destinations, std::size_t bytes,
               StorePolicy policy) noexcept {
  if (policy == StorePolicy::streaming) {
    kernels().walks.stream_copy(source, destinations.data(), destinations.size(), bytes);
  } else if (policy == StorePolicy::interleaved && destinations.size() > 1) {
    copy_interleaved(source, destinations, bytes);
  } else {
    copy_cached(source, destinations, bytes);
  }
}

}  // namespace hccl::reduce
