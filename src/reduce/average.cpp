// SPDX-License-Identifier: Apache-2.0
// Averages of sums that are complete: the last pass of an average across nodes. Plain arithmetic,
// as it runs once over what a network has brought.
#include "reduce/float_environment.h"
#include "reduce/plain.h"
#include "reduce/reduce.h"

namespace hccl::reduce {
namespace {

template <class Element>
void average_reals(std::byte* values, std::size_t bytes, std::uint32_t parts) {
  for (std::size_t at = 0; at < bytes; at += Element::kBytes)
    Element::write(Element::average(Element::read(values + at), parts), values + at);
}

// There may be more parts than the type can count.
template <class T>
void average_integers(std::byte* values, std::size_t bytes, std::uint32_t parts) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    const T mean = static_cast<T>(Wide{plain::load<T>(values + at)} / Wide{parts});
    std::memcpy(values + at, &mean, sizeof mean);
  }
}

}  // namespace

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
      return average_reals<plain::Float16>(values, bytes, parts);
    case hcclFloat32:
      return average_reals<plain::Float<float>>(values, bytes, parts);
    case hcclFloat64:
      return average_reals<plain::Float<double>>(values, bytes, parts);
    case hcclBfloat16:
      return average_reals<plain::Bfloat16>(values, bytes, parts);
    default:
      return;
  }
}

}  // namespace hccl::reduce
