// SPDX-License-Identifier: Apache-2.0
#include "mutator.h"

#include <algorithm>
#include <array>

namespace hccl::fuzz {
namespace {

constexpr std::size_t kLongest = 8192;

constexpr std::array<std::uint64_t, 17> kIntegers{
    0,      1,      7,      8,      12,      0x7F,       0x80,       0xFF,      0x100,
    0x1000, 0x2000, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};

using Offset = std::ptrdiff_t;

}  // namespace

std::size_t Mutator::below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

Input Mutator::next(const std::vector<Input>& corpus) {
  Input input = corpus.at(below(corpus.size()));
  const Input& other = corpus.at(below(corpus.size()));
  for (std::size_t left = 1 + below(8); left > 0; --left) change(input, other);
  if (input.size() > kLongest) input.resize(kLongest);
  return input;
}

void Mutator::change(Input& input, const Input& other) {
  const std::size_t at = below(input.size());
  const auto here = input.begin() + static_cast<Offset>(at);
  switch (below(8)) {
    case 0:
      if (!input.empty()) input[at] ^= static_cast<std::uint8_t>(1U << below(8));
      return;
    case 1:
      if (!input.empty()) input[at] = static_cast<std::uint8_t>(random_());
      return;
    case 2:
      return set_integer(input);
    case 3:
      return input.resize(below(input.size() + 1));
    case 4: {
      const auto end = here + static_cast<Offset>(below(input.size() - at + 1));
      input.erase(here, end);
      return;
    }
    case 5:
      input.insert(here, 1 + below(64), static_cast<std::uint8_t>(random_()));
      return;
    case 6:
      return splice(input, other);
    default:
      return splice(input, Input(input));
  }
}

void Mutator::set_integer(Input& input) {
  const std::size_t size = std::size_t{1} << below(4);
  if (input.size() < size) return;
  const std::size_t at = below(input.size() - size + 1);
  std::uint64_t value = kIntegers.at(below(kIntegers.size()));
  if (below(4) == 0) value = 0 - value;
  if (below(4) == 0) value = input.size() - at;  // the number of bytes from here to the end
  const bool big_endian = below(4) == 0;
  for (std::size_t i = 0; i < size; ++i) {
    input[at + (big_endian ? size - 1 - i : i)] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

// Overwrites bytes of `input` with a random range of `other`, or inserts that range.
void Mutator::splice(Input& input, const Input& other) {
  if (other.empty()) return;
  const std::size_t from = below(other.size());
  const std::size_t count = 1 + below(other.size() - from);
  const std::size_t at = below(input.size() + 1);
  const auto begin = other.begin() + static_cast<Offset>(from);
  if (below(2) == 0) {
    input.insert(input.begin() + static_cast<Offset>(at), begin,
                 begin + static_cast<Offset>(count));
    return;
  }
  const std::size_t room = std::min(count, input.size() - at);
  std::copy_n(begin, room, input.begin() + static_cast<Offset>(at));
}

}  // namespace hccl::fuzz
