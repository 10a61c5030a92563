// SPDX-License-Identifier: Apache-2.0
// A vector of a few plain values that lie in it: what C++26 calls inplace_vector, as far as it is
// needed here.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace hccl {

template <class Value, std::size_t kMost>
class InplaceVector {
  static_assert(std::is_trivially_destructible_v<Value> && std::is_trivially_copyable_v<Value>);

 public:
  InplaceVector() {}  // NOLINT(modernize-use-equals-default): that would write zeros
  InplaceVector(const InplaceVector&) = delete;
  InplaceVector& operator=(const InplaceVector&) = delete;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool has_room_for(std::size_t count) const { return count <= kMost - size_; }
  // There must be room.
  void push_back(const Value& value) { std::construct_at(values_ + size_++, value); }

  [[nodiscard]] Value* begin() { return values_; }
  [[nodiscard]] Value* end() { return values_ + size_; }
  [[nodiscard]] const Value* begin() const { return values_; }
  [[nodiscard]] const Value* end() const { return values_ + size_; }

 private:
  std::size_t size_ = 0;
  union {
    Value values_[kMost];
  };
};

}  // namespace hccl
