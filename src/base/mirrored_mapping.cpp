// SPDX-License-Identifier: Apache-2.0
#include "base/mirrored_mapping.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <cerrno>

#include <sys/mman.h>

namespace hccl {

MirroredMapping::MirroredMapping(const FileDescriptor& file, std::uint64_t offset,
                                 std::size_t bytes)
    : bytes_(bytes) {
  void* const both =
      mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool good = both != MAP_FAILED;
  for (std::size_t i = 0; good && i < 2; ++i) {
    good = mmap(static_cast<std::byte*>(both) + i * bytes, bytes, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_FIXED, file.get(), static_cast<off_t>(offset)) != MAP_FAILED;
  }
  const int error = errno;
  if (good) {
    madvise(both, 2 * bytes, MADV_DONTFORK);
    data_ = static_cast<std::byte*>(both);
    return;
  }
  if (both != MAP_FAILED) munmap(both, 2 * bytes);
  throw Error(hcclOutOfMemory, text("cannot map ", 2 * bytes, " bytes of shared memory: ",
                                    system_error_text(error), "; ", advice_on_mapping(error)));
}

MirroredMapping::~MirroredMapping() {
  if (data_ != nullptr) munmap(data_, 2 * bytes_);
}

}  // namespace hccl
