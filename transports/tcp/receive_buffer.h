// SPDX-License-Identifier: Apache-2.0
// Holds the bytes that have arrived and have not been released, in one contiguous range. An emptied
// buffer is refilled from its beginning, so that reading a stream in slices uses the same cache
// lines again and again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

namespace hccl::tcp {

class ReceiveBuffer {
 public:
  // The number of bytes that can always be lent in one piece. A value of 1 MiB was not faster.
  static constexpr std::size_t kViewLimit = std::size_t{256} << 10;
  static constexpr std::size_t kCapacity = 2 * kViewLimit;

  [[nodiscard]] std::span<const std::byte> filled() const {
    return {bytes_.get() + begin_, end_ - begin_};
  }
  // Returns memory for at most `most` further bytes, or an empty range if the buffer is full. After
  // reading into that memory, call add() with the number of bytes read.
  [[nodiscard]] std::span<std::byte> room(std::size_t most) {
    if (bytes_ == nullptr) bytes_.reset(new std::byte[kCapacity]);
    return {bytes_.get() + end_, std::min(most, kCapacity - end_)};
  }
  void add(std::size_t count) { end_ += count; }

  // Frees the first `count` bytes. May move the remaining bytes; no other call moves bytes.
  void release(std::size_t count) {
    begin_ += std::min(count, end_ - begin_);
    if (begin_ == end_) {
      begin_ = end_ = 0;
    } else if (kCapacity - begin_ < kViewLimit) {
      std::memmove(bytes_.get(), bytes_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace hccl::tcp
