// SPDX-License-Identifier: Apache-2.0
// A vector of trivially copyable values that stores at most kMost values inside the object: a
// subset of C++26's inplace_vector.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

namespace hccl {

template <class Value, std::size_t kMost>
class InplaceVector {
  static_assert(std::is_trivially_destructible_v<Value> && std::is_trivially_copyable_v<Value>);

 public:
  InplaceVector() = default;
  InplaceVector(const InplaceVector& other) { *this = other; }
  InplaceVector& operator=(const InplaceVector& other) {
    size_ = other.size_;  // the unused bytes are not copied
    std::uninitialized_copy(other.begin(), other.end(), begin());
    return *this;
  }
  ~InplaceVector() = default;

  [[nodiscard]] std::size_t size() const { return size_; }
  // Keeps only the first `size` values.
  void shrink(std::size_t size) { size_ = size; }
  [[nodiscard]] bool has_room_for(std::size_t count) const { return count <= kMost - size_; }
  // Call only if there is room.
  void push_back(const Value& value) { std::construct_at(begin() + size_++, value); }

  [[nodiscard]] Value* begin() { return std::launder(static_cast<Value*>(storage())); }
  [[nodiscard]] Value* end() { return begin() + size_; }
  [[nodiscard]] const Value* begin() const {
    return std::launder(static_cast<const Value*>(storage()));
  }
  [[nodiscard]] const Value* end() const { return begin() + size_; }

 private:
  [[nodiscard]] void* storage() { return bytes_.data(); }
  [[nodiscard]] const void* storage() const { return bytes_.data(); }

  std::size_t size_ = 0;
  alignas(Value) std::array<std::byte, kMost * sizeof(Value)> bytes_;
};

}  // namespace hccl
