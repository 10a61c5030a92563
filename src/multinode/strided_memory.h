// SPDX-License-Identifier: Apache-2.0
// Presents equally sized and equally spaced blocks of another Memory as one contiguous buffer.
#pragma once

#include "network/flow.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hccl::multinode {

class StridedMemory final : public network::Memory {
 public:
  // The first block begins at offset 0 of `memory`, which must outlive the object.
  StridedMemory(network::Memory& memory, std::uint64_t block_bytes, std::uint64_t stride)
      : memory_(memory), block_bytes_(block_bytes), stride_(stride) {}

  std::span<const std::byte> source(std::uint64_t offset, std::size_t most) override {
    return memory_.source(locate(offset), within_block(offset, most));
  }
  std::span<std::byte> destination(std::uint64_t offset, std::size_t most) override {
    return memory_.destination(locate(offset), within_block(offset, most));
  }
  std::uint64_t address(std::uint64_t offset) const override {
    return memory_.address(locate(offset));
  }

 private:
  [[nodiscard]] std::uint64_t locate(std::uint64_t offset) const {
    return offset / block_bytes_ * stride_ + offset % block_bytes_;
  }
  [[nodiscard]] std::size_t within_block(std::uint64_t offset, std::size_t most) const {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(most, block_bytes_ - offset % block_bytes_));
  }

  network::Memory& memory_;
  const std::uint64_t block_bytes_;
  const std::uint64_t stride_;
};

}  // namespace hccl::multinode
