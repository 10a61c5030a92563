// SPDX-License-Identifier: Apache-2.0
// The range of the program's address space in which the host views of one arena lie, each at its
// offset in the arena: so one comparison tells a view from other host memory, and one subtraction
// what it shows.
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

  // The place of what lies at `offset` in the arena, reserved with the first call; null where the
  // system refuses so long a range or RLIMIT_AS would leave less than its length beside it, then
  // and from then on. Not for two threads at a time.
  [[nodiscard]] std::byte* place(std::uint64_t offset) noexcept;

  // The offset in the arena of a host address in the range, else nothing. Any thread.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t host_address) const noexcept {
    const std::uint64_t offset = host_address - base_.load(std::memory_order_relaxed);
    return offset < bytes_ ? std::optional(offset) : std::nullopt;
  }

 private:
  // Device addresses, and no host's, are less than the length of an arena above it.
  static constexpr std::uint64_t kNowhere = kAddressBase;

  std::uint64_t bytes_;
  // Read by any thread that passes host memory to a call. Who passes a view has it from a call that
  // came after the store.
  std::atomic<std::uint64_t> base_{kNowhere};
  bool refused_ = false;
};

}  // namespace hccl::device
