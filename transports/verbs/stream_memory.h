// SPDX-License-Identifier: Apache-2.0
// The registered memory of one end of a stream. The ring receives the peer's writes and is mapped
// twice in succession, so that every range of arrived bytes is contiguous. The staging ring holds
// the data that the NIC does not read in place. The slots receive the peer's adverts.
#pragma once

#include "base/mirrored_mapping.h"
#include "verbs/advert.h"
#include "verbs/device.h"
#include "verbs/flow_control.h"
#include "verbs/registration_cache.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace hccl::verbs {

class StreamMemory {
 public:
  // Throws Error(hcclOutOfMemory or hcclSystemError).
  explicit StreamMemory(RegistrationCache& cache);

  // Returns the address of the ring's byte at `position`. The kRingBytes bytes that start at that
  // address are contiguous.
  [[nodiscard]] const std::byte* incoming(std::uint64_t position) const {
    return incoming_.at(position);
  }
  // Returns the part of the staging ring from `position` to the end of the ring.
  [[nodiscard]] std::span<std::byte> outgoing(std::uint64_t position) const {
    const std::size_t at = position % kRingBytes;
    return {outgoing_.data() + at, kRingBytes - at};
  }
  // Returns the peer's advert with this number.
  [[nodiscard]] Advert advert(std::uint32_t number) const;

  [[nodiscard]] std::uint64_t ring_address() const { return address_of(incoming_); }
  [[nodiscard]] std::uint64_t adverts_address() const { return address_of(adverts_memory_); }
  // Memory to which the peer writes.
  struct Target {
    const Registration& registration;
    std::span<std::byte> bytes;
  };
  [[nodiscard]] Target ring() const { return {registered_in_, {incoming_.data(), kRingBytes}}; }
  [[nodiscard]] Target adverts() const {
    return {registered_adverts_, {adverts_memory_.data(), kAdvertSlots * sizeof(Advert)}};
  }
  [[nodiscard]] std::uint32_t key_for_sending() const { return registered_out_.local_key(); }

 private:
  [[nodiscard]] static std::uint64_t address_of(const MirroredMapping& mapping) {
    return reinterpret_cast<std::uintptr_t>(mapping.data());
  }

  MirroredMapping incoming_;
  MirroredMapping outgoing_;
  MirroredMapping adverts_memory_;
  // The registrations must be destroyed before the memory.
  Registration registered_in_;
  Registration registered_out_;
  Registration registered_adverts_;
};

}  // namespace hccl::verbs
