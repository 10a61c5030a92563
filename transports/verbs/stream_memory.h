// SPDX-License-Identifier: Apache-2.0
// The registered memory of one end of a stream: the ring into which the peer writes, mapped twice
// in a row so that what has come is in one piece; a ring out of which is sent what lies in memory
// that is not registered; and places for the peer's invitations.
#pragma once

#include "base/mirrored_mapping.h"
#include "verbs/device.h"
#include "verbs/invitation.h"
#include "verbs/registration_cache.h"
#include "verbs/windows.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace hccl::verbs {

class StreamMemory {
 public:
  // Throws Error.
  explicit StreamMemory(RegistrationCache& cache);

  // Where the byte at a position of what came through the ring lies; kRingBytes from there on are
  // its successors.
  [[nodiscard]] const std::byte* incoming(std::uint64_t position) const {
    return incoming_.at(position);
  }
  // Where the bytes from a position on are put before they are sent, up to the end of the ring.
  [[nodiscard]] std::span<std::byte> outgoing(std::uint64_t position) const {
    const std::size_t at = position % kRingBytes;
    return {outgoing_.data() + at, kRingBytes - at};
  }
  // The peer's invitation number so and so.
  [[nodiscard]] Invitation invitation(std::uint32_t number) const;

  [[nodiscard]] std::uint64_t ring_address() const { return address_of(incoming_); }
  [[nodiscard]] std::uint32_t ring_key() const { return registered_in_.remote_key(); }
  [[nodiscard]] std::uint64_t notes_address() const { return address_of(notes_); }
  [[nodiscard]] std::uint32_t notes_key() const { return registered_notes_.remote_key(); }
  [[nodiscard]] std::uint32_t key_for_sending() const { return registered_out_.local_key(); }

 private:
  [[nodiscard]] static std::uint64_t address_of(const MirroredMapping& mapping) {
    return reinterpret_cast<std::uintptr_t>(mapping.data());
  }

  MirroredMapping incoming_;
  MirroredMapping outgoing_;
  MirroredMapping notes_;
  // End before the memory.
  Registration registered_in_;
  Registration registered_out_;
  Registration registered_notes_;
};

}  // namespace hccl::verbs
