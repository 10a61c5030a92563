// SPDX-License-Identifier: Apache-2.0
// Maps one allocation for the program's own code, contiguously and at a constant address.
#pragma once

#include "base/file_descriptor.h"

#include <cstddef>
#include <cstdint>

namespace hccl::device {

class HostView {
 public:
  HostView() = default;
  // Maps the pages [offset, offset + bytes) of the file to the address `place`, in address space
  // that the caller has reserved, or to any free address if `place` is null. Throws
  // Error(hcclOutOfMemory).
  HostView(const FileDescriptor& file, std::uint64_t offset, std::uint64_t bytes,
           std::byte* place = nullptr);
  // Gives the address range back to the caller's reservation, or unmaps the range if the caller
  // reserved none.
  ~HostView();
  HostView(HostView&& other) noexcept;
  HostView& operator=(HostView&& other) noexcept;

  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  // Maps other pages of the file at the same address; does nothing if nothing is mapped. Throws
  // Error(hcclOutOfMemory).
  void move_to(const FileDescriptor& file, std::uint64_t offset);

 private:
  void map(void* at, const FileDescriptor& file, std::uint64_t offset);

  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool reserved_ = false;
};

}  // namespace hccl::device
