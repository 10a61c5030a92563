// SPDX-License-Identifier: Apache-2.0
// Creates and checks memory files, and maps each at most once per process.
#include "base/shared_memory.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/file_registry.h"
#include "base/retry.h"
#include "base/text.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace hccl {
namespace {

constexpr int kSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

}  // namespace

FileDescriptor create_memory_file(const char* name, std::uint64_t bytes) {
  FileDescriptor file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!file.valid() && errno == EINVAL)
    file = FileDescriptor(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) {
    throw Error(hcclSystemError,
                text("cannot create shared memory (memfd_create): ", system_error_text(errno), "; ",
                     advice_on(errno, "report this as a bug in hccl")));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
      bytes > limit.rlim_cur) {  // ftruncate would raise SIGXFSZ
    throw Error(hcclOutOfMemory, text("cannot set the size of shared memory to ", bytes,
                                      " bytes: files are limited to ", limit.rlim_cur,
                                      " bytes; raise ulimit -f or lower HCCL_DEVICE_MEMORY"));
  }
  if (retried([&] { return ftruncate(file.get(), static_cast<off_t>(bytes)); }) != 0) {
    throw Error(hcclOutOfMemory, text("cannot set the size of shared memory to ", bytes,
                                      " bytes: ", system_error_text(errno), "; ",
                                      advice_on(errno, "lower HCCL_DEVICE_MEMORY")));
  }
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    throw Error(hcclSystemError, text("cannot seal shared memory: ", system_error_text(errno), "; ",
                                      advice_on(errno, "report this as a bug in hccl")));
  }
  return file;
}

void require_sealed(const FileDescriptor& file, std::uint64_t bytes, const std::string& owner) {
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    throw Error(hcclSystemError, text(owner, " sent shared memory that it can still resize (",
                                      seals < 0 ? "not a memory file" : "not sealed",
                                      "); install the same version of hccl on all ranks"));
  }
  const std::uint64_t actual = file_identity(file).bytes;
  if (actual != bytes) {
    throw Error(hcclSystemError,
                text(owner, " sent ", actual, " bytes of shared memory instead of ", bytes,
                     "; install the same version of hccl on all ranks"));
  }
}

FileIdentity file_identity(const FileDescriptor& file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) {
    throw Error(hcclSystemError, text("cannot examine shared memory: ", system_error_text(errno),
                                      "; ", advice_on(errno, "report this as a bug in hccl")));
  }
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size)};
}

std::shared_ptr<SharedSegment> SharedSegment::map(const FileDescriptor& file) {
  return FileRegistry<SharedSegment>::instance().get(file, [&](const FileIdentity& identity) {
    std::shared_ptr<SharedSegment> segment(new SharedSegment(identity.bytes));
    void* data = mmap(nullptr, identity.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      file.get(), 0);
    if (data == MAP_FAILED) {
      throw Error(hcclOutOfMemory, text("cannot map ", identity.bytes, " bytes of shared memory: ",
                                        system_error_text(errno), "; ", advice_on_mapping(errno)));
    }
    segment->data_ = static_cast<std::byte*>(data);
    madvise(data, identity.bytes, MADV_DONTFORK);
    return segment;
  });
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) munmap(data_, size_);
  FileRegistry<SharedSegment>::instance().forget_expired();
}

}  // namespace hccl
