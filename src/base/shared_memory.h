// SPDX-License-Identifier: Apache-2.0
// Anonymous shared memory (memfd). It has no name in a file system, so a killed process leaves no
// file behind, and the size limit of /dev/shm does not apply.
#pragma once

#include "base/file_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hccl {

// Creates a sparse memory file of `bytes` bytes, sealed against resizing. Throws
// Error(hcclOutOfMemory) or Error(hcclSystemError).
[[nodiscard]] FileDescriptor create_memory_file(const char* name, std::uint64_t bytes);

// Checks a memory file from another process before it is mapped. If that process could still shrink
// the file, it could crash this process with SIGBUS. Throws Error(hcclSystemError), which names
// `owner`, unless the file has the seals of create_memory_file() and exactly `bytes` bytes.
void require_sealed(const FileDescriptor& file, std::uint64_t bytes, const std::string& owner);

// Identifies the file that a descriptor refers to. All descriptors of one memory file, in any
// process, have the same identity.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 mistakes the operator for a null pointer
  friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};
[[nodiscard]] FileIdentity file_identity(const FileDescriptor& file);

// A mapping of a whole memory file. A process maps each file once, so ranks that are threads of one
// process use the same addresses.
class SharedSegment {
 public:
  [[nodiscard]] static std::shared_ptr<SharedSegment> map(const FileDescriptor& file);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  explicit SharedSegment(std::size_t size) : size_(size) {}

  std::byte* data_ = nullptr;
  std::size_t size_;
};

}  // namespace hccl
