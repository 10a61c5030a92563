// SPDX-License-Identifier: Apache-2.0
// Holds the bytes that have arrived and are not released, contiguously. It restarts at its
// beginning whenever it is empty, so that a stream read in slices stays in the same cache lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

namespace hccl::tcp {

class ReceiveBuffer {
 public:
  // The number of bytes that can always be contiguous, and the size of the buffer. 1 MiB was not
  // faster.
  static constexpr std::size_t kViewLimit = std::size_t{256} << 10;
  static constexpr std::size_t kCapacity = 2 * kViewLimit;

  [[nodiscard]] std::span<const std::byte> filled() const {
    return {bytes_.get() + begin_, end_ - begin_};
  }
  // Returns the memory into which the next bytes are to be read, at most `most`; empty if the
  // buffer is full. Call add() with the number of bytes read.
  [[nodiscard]] std::span<std::byte> room(std::size_t most) {
    if (bytes_ == nullptr) bytes_.reset(new std::byte[kCapacity]);
    return {bytes_.get() + end_, std::min(most, kCapacity - end_)};
  }
  void add(std::size_t count) { end_ += count; }

  // Frees the first `count` bytes. Only this call moves the remaining ones.
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
