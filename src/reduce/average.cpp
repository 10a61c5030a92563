// SPDX-License-Identifier: Apache-2.0
// The first and the last pass of an average across nodes. The last pass uses plain arithmetic,
// because it runs only once per call, on data that has crossed the network.
#include "reduce/float_environment.h"
#include "reduce/plain.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

namespace hccl::reduce {
namespace {

// Returns the factor that scales the inputs: a power of two, which a float represents exactly.
float prescale(std::uint32_t parts) noexcept {
  return 1.0F / static_cast<float>(std::bit_ceil(std::uint64_t{parts}));
}

// Undoes the scaling and divides, in one multiplication, and rounds once to the element's type. The
// product overflows only if the mean does.
template <class Element>
void average_prescaled(std::byte* values, std::size_t bytes, std::uint32_t parts) {
  const float factor = 1.0F / static_cast<float>(parts) / prescale(parts);
  for (std::size_t at = 0; at < bytes; at += Element::kBytes)
    Element::write(Element::read(values + at) * factor, values + at);
}

template <class Element>
void average_sums(std::byte* values, std::size_t bytes, std::uint32_t parts) {
  for (std::size_t at = 0; at < bytes; at += Element::kBytes)
    Element::write(Element::average(Element::read(values + at), parts), values + at);
}

}  // namespace

void prescale_tile(hcclDataType_t type, const std::byte* source, std::byte* destination,
                   std::size_t count, std::uint32_t parts) noexcept {
  constexpr std::size_t kBlock = 4096 / 2;  // elements; half and bfloat16 have two bytes
  std::array<std::byte, 4096> factors;
  plain::with_element(type, [&](auto element) {
    using Element = decltype(element);
    for (std::size_t at = 0; at < factors.size(); at += Element::kBytes)
      Element::write(static_cast<typename Element::Accumulator>(prescale(parts)),
                     factors.data() + at);
  });
  for (std::size_t at = 0; at < count; at += kBlock) {
    const std::size_t offset = at * element_size(type);
    const std::array<const std::byte*, 2> operands{source + offset, factors.data()};
    std::byte* const to = destination + offset;
    reduce_tile(type, hcclProd, operands, {&to, 1}, std::min(kBlock, count - at),
                StorePolicy::cached);
  }
}

void average_tile(hcclDataType_t type, std::byte* values, std::size_t count,
                  std::uint32_t parts) noexcept {
  if (parts == 1) return;
  const FloatEnvironment environment;
  const std::size_t bytes = count * element_size(type);
  plain::with_element(type, [&](auto element) {
    using Element = decltype(element);
    if constexpr (std::is_same_v<typename Element::Accumulator, float>) {
      if (needs_prescale(type)) return average_prescaled<Element>(values, bytes, parts);
    }
    average_sums<Element>(values, bytes, parts);
  });
}

}  // namespace hccl::reduce
