// SPDX-License-Identifier: Apache-2.0
// The first and the last pass of an average across nodes. The last uses plain arithmetic because it
// runs once over data from a network.
#include "reduce/float_environment.h"
#include "reduce/plain.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <array>
#include <bit>

namespace hccl::reduce {
namespace {

// Returns the scale, which a float represents exactly for any number of parts.
float prescale(std::uint32_t parts) noexcept {
  return 1.0F / static_cast<float>(std::bit_ceil(std::uint64_t{parts}));
}

template <class Element>
std::array<std::byte, 4096> block_of(float value) {
  std::array<std::byte, 4096> block;
  for (std::size_t at = 0; at < block.size(); at += Element::kBytes)
    Element::write(value, block.data() + at);
  return block;
}

// Compensates for the scale and divides with one rounding. The product overflows only if the mean
// does.
template <class Element>
void average_prescaled(std::byte* values, std::size_t bytes, std::uint32_t parts) {
  const float factor = 1.0F / static_cast<float>(parts) / prescale(parts);
  for (std::size_t at = 0; at < bytes; at += Element::kBytes)
    Element::write(Element::read(values + at) * factor, values + at);
}

template <class Element>
void average_reals(std::byte* values, std::size_t bytes, std::uint32_t parts) {
  for (std::size_t at = 0; at < bytes; at += Element::kBytes)
    Element::write(Element::average(Element::read(values + at), parts), values + at);
}

// Divides in a wider type: there may be more parts than T can represent.
template <class T>
void average_integers(std::byte* values, std::size_t bytes, std::uint32_t parts) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    const T mean = static_cast<T>(Wide{plain::load<T>(values + at)} / Wide{parts});
    std::memcpy(values + at, &mean, sizeof mean);
  }
}

}  // namespace

bool needs_prescale(hcclDataType_t type) noexcept {
  return type == hcclFloat16 || type == hcclBfloat16;
}

void prescale_tile(hcclDataType_t type, const std::byte* source, std::byte* destination,
                   std::size_t count, std::uint32_t parts) noexcept {
  constexpr std::size_t kBlock = 4096 / 2;  // elements; both types have two bytes
  const std::array<std::byte, 4096> factors = type == hcclFloat16
                                                  ? block_of<plain::Float16>(prescale(parts))
                                                  : block_of<plain::Bfloat16>(prescale(parts));
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
  switch (type) {
    case hcclInt8:
      return average_integers<std::int8_t>(values, bytes, parts);
    case hcclUint8:
      return average_integers<std::uint8_t>(values, bytes, parts);
    case hcclInt32:
      return average_integers<std::int32_t>(values, bytes, parts);
    case hcclUint32:
      return average_integers<std::uint32_t>(values, bytes, parts);
    case hcclInt64:
      return average_integers<std::int64_t>(values, bytes, parts);
    case hcclUint64:
      return average_integers<std::uint64_t>(values, bytes, parts);
    case hcclFloat16:
      return average_prescaled<plain::Float16>(values, bytes, parts);
    case hcclFloat32:
      return average_reals<plain::Float<float>>(values, bytes, parts);
    case hcclFloat64:
      return average_reals<plain::Float<double>>(values, bytes, parts);
    case hcclBfloat16:
      return average_prescaled<plain::Bfloat16>(values, bytes, parts);
    default:
      return;
  }
}

}  // namespace hccl::reduce
