// SPDX-License-Identifier: Apache-2.0
// The registered memory of one end of a stream: the ring into which the peer writes, mapped twice
// in a row so that what has come is in one piece, and a ring of the same size out of which is sent.
#pragma once

#include "base/mirrored_mapping.h"
#include "verbs/device.h"
#include "verbs/windows.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hccl::verbs {

class StreamMemory {
 public:
  // Throws Error.
  explicit StreamMemory(Device& device);

  // Where the byte at a position of what comes lies; kRingBytes from there on are its successors.
  [[nodiscard]] const std::byte* incoming(std::uint64_t position) const {
    return incoming_.data() + position % kRingBytes;
  }
  // Where the bytes from a position on are put before they are sent, up to the end of the ring.
  [[nodiscard]] std::span<std::byte> outgoing(std::uint64_t position) const {
    const std::size_t at = position % kRingBytes;
    return {outgoing_.data() + at, kRingBytes - at};
  }

  [[nodiscard]] std::uint64_t address() const {
    return reinterpret_cast<std::uintptr_t>(incoming_.data());
  }
  [[nodiscard]] std::uint32_t key_for_peer() const { return registered_in_.remote_key(); }
  [[nodiscard]] std::uint32_t key_for_sending() const { return registered_out_.local_key(); }

 private:
  MirroredMapping incoming_;
  MirroredMapping outgoing_;
  Registration registered_in_;  // ends before the memory
  Registration registered_out_;
};

}  // namespace hccl::verbs
