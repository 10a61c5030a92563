// SPDX-License-Identifier: Apache-2.0
// Reserves space in a message ring, the part of a staging buffer that holds whole messages.
#pragma once

#include "device/address.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace hccl::node {

// Reserves space front to back, and wraps around at the end. Reservations may be freed in any
// order, but their space is reserved again only after all earlier reservations have been freed too.
class StagingRing {
 public:
  // Where a reservation begins if the ring is empty. late: after the last reservation, so that
  // space is reused as late as possible. early: at the front.
  enum class Reuse : std::uint8_t { late, early };

  StagingRing(std::uint64_t bytes, Reuse reuse) : bytes_(bytes), reuse_(reuse) {}

  // Returns how much space a reservation of `bytes` bytes takes up.
  [[nodiscard]] static constexpr std::uint64_t size_of(std::uint64_t bytes) {
    return device::round_up(bytes, kAlignment);
  }
  // Returns the offset of `bytes` contiguous bytes, which is a multiple of kAlignment. Returns
  // nothing if there is no room. `bytes` must not be 0.
  [[nodiscard]] std::optional<std::uint64_t> reserve(std::uint64_t bytes);
  // Frees the reservation at `offset`, which reserve() has returned.
  void free(std::uint64_t offset);
  // Returns whether the next reservation will probably follow the last one. If space is reused
  // early, the only reservation may be freed first, and the next one then begins at offset 0.
  [[nodiscard]] bool advances() const { return reuse_ == Reuse::late || reservations_.size() > 1; }
  void clear() { reservations_.clear(); }

 private:
  static constexpr std::uint64_t kAlignment = 64;  // a cache line

  struct Reservation {
    std::uint64_t begin;
    std::uint64_t end;
    bool is_free;
  };

  const std::uint64_t bytes_;
  const Reuse reuse_;
  std::uint64_t end_ = 0;                 // of the last reservation
  std::deque<Reservation> reservations_;  // oldest first
};

}  // namespace hccl::node
