// SPDX-License-Identifier: Apache-2.0
// The transfers in progress (flows), and the memory that they read and write.
#pragma once

#include "schedule/chunking.h"
#include "schedule/schedule.h"
#include "transport/endpoint.h"

#include <hccl_types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hccl::network {

// A buffer of a call. The buffer need not be contiguous, so source() and destination() may return
// fewer bytes than requested, but only whole elements.
class Memory {
 public:
  Memory() = default;
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Return at least one byte and at most `most` bytes, from byte `offset` on, for reading or for
  // writing. The span is valid as long as the buffer. Throw Error(hcclOutOfMemory) if pages of
  // device memory cannot be mapped or allocated.
  [[nodiscard]] virtual std::span<const std::byte> source(std::uint64_t offset,
                                                          std::size_t most) = 0;
  [[nodiscard]] virtual std::span<std::byte> destination(std::uint64_t offset,
                                                         std::size_t most) = 0;
  // Returns the address of the byte at `offset`, for comparison with positions in other buffers.
  [[nodiscard]] virtual std::uint64_t address(std::uint64_t offset) const = 0;
};

// Contiguous memory of this process.
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

// The buffers of a call on this rank. `scratch` holds Chunking::scratch_elements() elements.
struct Operands {
  Memory* input = nullptr;
  Memory* output = nullptr;
  Memory* scratch = nullptr;
  hcclDataType_t type = hcclFloat32;
  hcclRedOp_t operation = hcclSum;  // never hcclAvg: the sum is divided afterwards
};

// Maps a schedule's spans to bytes of the operands.
class Layout {
 public:
  Layout(const schedule::Chunking& chunking, const Operands& operands);

  // Returns the number of bytes that a transfer of the span moves. A span without chunks is a
  // signal, which moves one byte.
  [[nodiscard]] std::uint64_t bytes(const schedule::Span& span) const;
  // Return at most `most` contiguous bytes, starting at byte `position` of the span.
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
  [[nodiscard]] Place locate(const schedule::Span& span, std::uint64_t position,
                             std::uint64_t most) const;

  const schedule::Chunking& chunking_;
  const Operands operands_;
  const std::size_t element_bytes_;
};

// The state of a connection to a peer during one call.
struct PeerConnection {
  int peer = -1;
  transport::Endpoint* endpoint = nullptr;
  std::uint32_t header_sent = 0;  // bytes of the call's header
  bool header_received = false;
};

struct Flow;

// Makes a flow wait for an earlier flow of the step. If `whole`, the later flow begins when the
// earlier one is complete. Otherwise, the later flow must not get ahead of the earlier one.
struct Dependency {
  const Flow* flow = nullptr;
  bool whole = false;
};

// A transfer in progress.
struct Flow {
  const schedule::Transfer* transfer = nullptr;
  PeerConnection* connection = nullptr;  // null if the transfer is local
  std::uint64_t bytes = 0;
  std::uint64_t moved = 0;
  std::vector<Dependency> dependencies{};  // empty for most flows

  [[nodiscard]] bool complete() const { return moved == bytes; }
  [[nodiscard]] bool is_signal() const { return transfer->span.chunk_count == 0; }
  // Returns the byte position up to which the flow may proceed now.
  [[nodiscard]] std::uint64_t allowed() const {
    std::uint64_t most = bytes;
    for (const Dependency& dependency : dependencies) {
      if (!dependency.flow->complete())
        most = std::min(most, dependency.whole ? moved : dependency.flow->moved);
    }
    return most;
  }
};

// Move one contiguous piece of the data, or as much of it as is possible without blocking, and
// return the number of bytes moved: at most 256 KiB, or transport::kLongestDestination for received
// data that is not folded. move_send() first sends the rest of the call's header, and counts the
// header's bytes in addition. Call move_receive() only after the peer's header has been received.
[[nodiscard]] std::uint64_t move_send(Flow& flow, const Layout& layout,
                                      std::span<const std::byte> header);
[[nodiscard]] std::uint64_t move_receive(Flow& flow, const Layout& layout);

}  // namespace hccl::network
