// SPDX-License-Identifier: Apache-2.0
// Mutates inputs at random. The same seed gives the same mutations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace hccl::fuzz {

using Input = std::vector<std::uint8_t>;

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  // Returns a random corpus input with one to eight changes: flipped bits, random bytes, boundary
  // values, lengths, and ranges of bytes that are removed, inserted, repeated or copied from
  // another input. Cuts off a result that is too long.
  [[nodiscard]] Input next(const std::vector<Input>& corpus);

 private:
  void change(Input& input, const Input& other);
  void set_integer(Input& input);
  void splice(Input& input, const Input& other);
  [[nodiscard]] std::size_t below(std::size_t bound);

  std::mt19937_64 random_;
};

}  // namespace hccl::fuzz
