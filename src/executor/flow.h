// SPDX-License-Identifier: Apache-2.0
// How far one transfer of a step has come.
#pragma once

#include "schedule/chunking.h"
#include "schedule/schedule.h"
#include "transport/endpoint.h"

#include <hccl_types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hccl::executor {

// A buffer of the call. A piece may be shorter than asked for where the memory is not in one piece,
// but holds whole elements.
class Memory {
 public:
  Memory() = default;
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // From byte `offset` on: one to `most` bytes, to be read or to be stored to, until the next call.
  // Throw Error where that cannot be.
  [[nodiscard]] virtual std::span<const std::byte> source(std::uint64_t offset,
                                                          std::size_t most) = 0;
  [[nodiscard]] virtual std::span<std::byte> destination(std::uint64_t offset,
                                                         std::size_t most) = 0;
  // Tells bytes apart: the same byte has the same in any buffer.
  [[nodiscard]] virtual std::uint64_t address(std::uint64_t offset) const = 0;
};

// Memory that is simply there.
class PlainMemory final : public Memory {
 public:
  explicit PlainMemory(std::byte* begin) : begin_(begin) {}

  std::span<const std::byte> source(std::uint64_t offset, std::size_t most) override {
    return {begin_ + offset, most};
  }
  std::span<std::byte> destination(std::uint64_t offset, std::size_t most) override {
    return {begin_ + offset, most};
  }
  std::uint64_t address(std::uint64_t offset) const override {
    return reinterpret_cast<std::uintptr_t>(begin_) + offset;
  }

 private:
  std::byte* begin_;
};

// Where a call's data lies on this rank. `scratch` has as many elements as the chunking says.
struct Operands {
  Memory* input = nullptr;
  Memory* output = nullptr;
  Memory* scratch = nullptr;
  hcclDataType_t type = hcclFloat32;
  hcclRedOp_t operation = hcclSum;  // no average: that is a sum, scaled when it is complete
};

// Finds the bytes of spans.
class Layout {
 public:
  Layout(const schedule::Chunking& chunking, const Operands& operands);

  // All bytes that a transfer of the span moves; a signal is one byte of no span.
  [[nodiscard]] std::uint64_t bytes(const schedule::Span& span) const;
  // From byte `position` of the span on, as far as it lies in one piece, and at most `most` bytes.
  [[nodiscard]] std::span<const std::byte> source(const schedule::Span& span,
                                                  std::uint64_t position, std::uint64_t most) const;
  [[nodiscard]] std::span<std::byte> destination(const schedule::Span& span, std::uint64_t position,
                                                 std::uint64_t most) const;
  // Returns the address of the span's first byte.
  [[nodiscard]] std::uint64_t address(const schedule::Span& span) const;
  [[nodiscard]] std::size_t element_bytes() const { return element_bytes_; }
  [[nodiscard]] const Operands& operands() const { return operands_; }

 private:
  struct Place {
    Memory* memory;
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  [[nodiscard]] Place place(const schedule::Span& span, std::uint64_t position,
                            std::uint64_t most) const;

  const schedule::Chunking& chunking_;
  const Operands operands_;
  const std::size_t element_bytes_;
};

// One stream as one call uses it.
struct Link {
  int peer = -1;
  transport::Endpoint* endpoint = nullptr;
  std::uint32_t header_sent = 0;  // bytes
  bool header_received = false;
};

struct Flow;

// A flow that another may not overtake byte by byte, or not begin before it is complete.
struct Gate {
  const Flow* flow = nullptr;
  bool whole = false;
};

// A transfer in progress.
struct Flow {
  const schedule::Transfer* transfer = nullptr;
  Link* link = nullptr;  // null: local
  std::uint64_t bytes = 0;
  std::uint64_t moved = 0;
  std::vector<Gate> gates{};  // few flows have any

  [[nodiscard]] bool complete() const { return moved == bytes; }
  [[nodiscard]] bool is_signal() const { return transfer->span.chunk_count == 0; }
  // How far it may come now.
  [[nodiscard]] std::uint64_t allowed() const {
    std::uint64_t most = bytes;
    for (const Gate& gate : gates) {
      if (!gate.flow->complete()) most = std::min(most, gate.whole ? moved : gate.flow->moved);
    }
    return most;
  }
};

// Move what can be moved now, of at most some hundred kilobytes, and return how many bytes. The
// link's headers have been dealt with, but for a send's, which goes out with the first bytes.
[[nodiscard]] std::uint64_t move_send(Flow& flow, const Layout& layout,
                                      std::span<const std::byte> header);
[[nodiscard]] std::uint64_t move_receive(Flow& flow, const Layout& layout);

}  // namespace hccl::executor
