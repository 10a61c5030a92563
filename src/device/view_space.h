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

  // Returns the host address for `offset` in the arena. The first call reserves the range. Returns
  // null, from then on, if the system refuses the range or RLIMIT_AS would leave less than its
  // length beside it. Not thread-safe.
  [[nodiscard]] std::byte* place(std::uint64_t offset) noexcept;

  // Returns the offset in the arena of a host address in the range, nothing for any other address.
  // Thread-safe.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t host_address) const noexcept {
    const std::uint64_t offset = host_address - base_.load(std::memory_order_relaxed);
    return offset < bytes_ ? std::optional(offset) : std::nullopt;
  }

 private:
  // Device addresses, and no host's, are less than the length of an arena above it.
  static constexpr std::uint64_t kNowhere = kAddressBase;

  std::uint64_t bytes_;
  // Read by any thread that passes host memory to a call. A thread that passes a view has
  // it from a call that came after the store.
  std::atomic<std::uint64_t> base_{kNowhere};
  bool refused_ = false;
};

}  // namespace hccl::device
