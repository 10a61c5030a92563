// SPDX-License-Identifier: Apache-2.0
// The copies between a rank's host memory, which peers cannot map, and a staging buffer that they
// can map.
#pragma once

#include <cstdint>

namespace hccl::node {

// Part of every chunk of a call's buffers.
struct Slice {
  std::uint64_t first_byte = 0;
  std::uint64_t bytes = 0;
};

// Copies a rank's host memory through a staging buffer. In the call, the address of that buffer
// replaces the address of the host memory.
class Staging {
 public:
  Staging() = default;
  virtual ~Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  [[nodiscard]] virtual bool stages_send() const = 0;
  [[nodiscard]] virtual bool stages_recv() const = 0;
  // fill() copies the data that this rank sends in a slice into the staging buffer; drain() copies
  // the data received there to the program's memory. The slice's parts of all chunks are contiguous
  // in the staging buffer, at Slicing::offset_in(). Throw Error.
  virtual void fill(const Slice& slice) = 0;
  virtual void drain(const Slice& slice) = 0;
};

}  // namespace hccl::node
