// SPDX-License-Identifier: Apache-2.0
// Lays out and maps the file: 64 KiB for the header, then the rings.
#include "shm/segment.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/shared_memory.h"
#include "base/text.h"

#include <cerrno>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace hccl::shm {
namespace {

constexpr std::size_t kHeaderBytes = std::size_t{64} << 10;  // a multiple of the usual page sizes
constexpr std::size_t kFileBytes = kHeaderBytes + 2 * Segment::kRingBytes;
static_assert(sizeof(Header) <= kHeaderBytes);

}  // namespace

FileDescriptor Segment::create() { return create_memory_file("hccl-stream", kFileBytes); }

Segment::Segment(const FileDescriptor& file, const std::string& maker) {
  require_sealed(file, kFileBytes, maker);
  for (std::size_t side = 0; side < rings_.size(); ++side)
    rings_[side] = MirroredMapping(file, kHeaderBytes + side * kRingBytes, kRingBytes);
  void* const page = mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (page == MAP_FAILED) {
    throw Error(hcclOutOfMemory, text("cannot map ", kHeaderBytes, " bytes of shared memory: ",
                                      system_error_text(errno), "; ", advice_on_mapping(errno)));
  }
  madvise(page, kHeaderBytes, MADV_DONTFORK);
  header_ = static_cast<Header*>(page);  // new pages are zero, the initial value of the atomics
}

Segment::~Segment() { munmap(header_, kHeaderBytes); }

}  // namespace hccl::shm
