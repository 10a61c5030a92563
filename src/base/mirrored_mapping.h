// SPDX-License-Identifier: Apache-2.0
// Maps a range of a memory file twice, back to back, so that a part that wraps around the end of
// the range is contiguous in memory.
#pragma once

#include "base/file_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hccl {

class MirroredMapping {
 public:
  MirroredMapping() = default;
  // Maps `bytes` bytes of the file from `offset` on. `bytes` and `offset` must be multiples of the
  // page size. Forked children do not inherit the mapping. Throws Error(hcclOutOfMemory).
  MirroredMapping(const FileDescriptor& file, std::uint64_t offset, std::size_t bytes);
  MirroredMapping(MirroredMapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  MirroredMapping& operator=(MirroredMapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  MirroredMapping(const MirroredMapping&) = delete;
  MirroredMapping& operator=(const MirroredMapping&) = delete;
  ~MirroredMapping();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  // Returns the size of the range, which is half the size of the mapping.
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  // Returns the address of the byte at `position` modulo size() in the range. The size() bytes from
  // this address on are contiguous.
  [[nodiscard]] std::byte* at(std::uint64_t position) const noexcept {
    return data_ + position % bytes_;
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hccl
