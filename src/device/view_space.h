// SPDX-License-Identifier: Apache-2.0
// The range of the program's address space that holds the host views of one arena, each at its
// offset in the arena. One comparison then distinguishes a view from other host memory, and one
// subtraction gives the view's offset in the arena.
#pragma once

#include "device/address.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hccl::device {

class ViewSpace {
 public:
  explicit ViewSpace(std::uint64_t bytes) noexcept : bytes_(bytes) {}
  ~ViewSpace();
  ViewSpace(const ViewSpace&) = delete;
  ViewSpace& operator=(const ViewSpace&) = delete;

  // Returns the host address for `offset` in the arena. The first call reserves the range. If the
  // system refuses the reservation, or if RLIMIT_AS may then leave less address space for other
  // mappings than the range takes, this and all later calls return null. Thread safety: one thread
  // at a time.
  [[nodiscard]] std::byte* address_at(std::uint64_t offset) noexcept;

  // Returns whether address_at() has failed to reserve the range. Thread safety: any thread.
  [[nodiscard]] bool refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

  // Returns the offset in the arena if the host address lies in the range, and otherwise nothing.
  // Thread safety: any thread.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t host_address) const noexcept {
    const std::uint64_t offset = host_address - base_.load(std::memory_order_relaxed);
    return offset < bytes_ ? std::optional(offset) : std::nullopt;
  }

 private:
  // The value of base_ while no range is reserved: the base of the device addresses, none of which
  // is a host address. With this value, offset_of() returns nothing for every host address.
  static constexpr std::uint64_t kNowhere = kAddressBase;

  std::uint64_t bytes_;
  // Stored by the first address_at(), and read by every thread that passes host memory to a call.
  // Relaxed order is enough: a thread that passes a view has received the view's address from a
  // call that came after the store.
  std::atomic<std::uint64_t> base_{kNowhere};
  std::atomic<bool> refused_{false};
};

}  // namespace hccl::device
