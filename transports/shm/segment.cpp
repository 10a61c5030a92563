// SPDX-License-Identifier: Apache-2.0
// One file: a page for the header, then the rings.
#include "shm/segment.h"

#include "base/error.h"
#include "base/shared_memory.h"
#include "base/text.h"

#include <cerrno>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hccl::shm {
namespace {

constexpr std::size_t kHeaderBytes = std::size_t{64} << 10;  // a page, however large pages are
constexpr std::size_t kFileBytes = kHeaderBytes + 2 * Segment::kRingBytes;
constexpr std::size_t kMappedRings = 4 * Segment::kRingBytes;
static_assert(sizeof(Header) <= kHeaderBytes);

[[noreturn]] void fail_to_map() {
  throw Error(hcclOutOfMemory, text("cannot map ", kFileBytes, " bytes of shared memory: ",
                                    system_error_text(errno), "; raise ulimit -v"));
}

}  // namespace

FileDescriptor Segment::create() { return create_memory_file("hccl-stream", kFileBytes); }

Segment::Segment(const FileDescriptor& file) {
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (file_identity(file).bytes != kFileBytes || seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    throw Error(
        hcclSystemError,
        "another rank has sent a file that is no shared memory of a stream; use one version "
        "on all ranks");
  }
  void* const page = mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (page == MAP_FAILED) fail_to_map();
  madvise(page, kHeaderBytes, MADV_DONTFORK);
  header_ = static_cast<Header*>(page);  // zeros, which its atomics begin with
  map_rings(file.get());
}

void Segment::map_rings(int fd) {
  void* const all =
      mmap(nullptr, kMappedRings, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool good = all != MAP_FAILED;
  rings_ = static_cast<std::byte*>(all);
  for (std::size_t i = 0; good && i < 4; ++i) {
    const auto offset = static_cast<off_t>(kHeaderBytes + i / 2 * kRingBytes);
    good = mmap(rings_ + i * kRingBytes, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                fd, offset) != MAP_FAILED;
  }
  if (good) {
    madvise(all, kMappedRings, MADV_DONTFORK);
    return;
  }
  const int why = errno;
  if (all != MAP_FAILED) munmap(all, kMappedRings);
  munmap(header_, kHeaderBytes);
  errno = why;
  fail_to_map();
}

Segment::~Segment() {
  munmap(rings_, kMappedRings);
  munmap(header_, kHeaderBytes);
}

}  // namespace hccl::shm
