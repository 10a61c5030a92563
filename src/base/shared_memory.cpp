// SPDX-License-Identifier: Apache-2.0
// Memory files and their one mapping per process.
#include "base/shared_memory.h"

#include "base/error.h"
#include "base/text.h"

#include <cerrno>
#include <map>
#include <mutex>

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

std::mutex& registry_mutex() {
  static auto* mutex = new std::mutex;  // never destroyed: used by static destructors of programs
  return *mutex;
}

std::map<FileIdentity, std::weak_ptr<SharedSegment>>& registry() {
  static auto* segments = new std::map<FileIdentity, std::weak_ptr<SharedSegment>>;
  return *segments;
}

}  // namespace

FileDescriptor create_memory_file(const char* name, std::uint64_t bytes) {
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    throw Error(hcclSystemError, text("cannot create shared memory (memfd_create): ",
                                      system_error_text(errno), "; check the limit of open files"));
  }
  FileDescriptor file(fd);
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {  // a signal would kill us
    throw Error(hcclOutOfMemory,
                text("cannot size shared memory to ", bytes, " bytes: files are limited to ",
                     limit.rlim_cur, "; raise ulimit -f or lower HCCL_DEVICE_MEMORY"));
  }
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    throw Error(hcclOutOfMemory, text("cannot size shared memory to ", bytes,
                                      " bytes: ", system_error_text(errno), "; check ulimit -f"));
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    throw Error(hcclSystemError, text("cannot seal shared memory: ", system_error_text(errno)));
  }
  return file;
}

FileIdentity file_identity(const FileDescriptor& file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) {
    throw Error(hcclSystemError, text("cannot examine shared memory: ", system_error_text(errno)));
  }
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size)};
}

std::shared_ptr<SharedSegment> SharedSegment::map(const FileDescriptor& file) {
  const FileIdentity identity = file_identity(file);
  const std::lock_guard lock(registry_mutex());
  auto& entry = registry()[identity];
  if (auto segment = entry.lock()) return segment;
  void* data = mmap(nullptr, identity.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                    file.get(), 0);
  if (data == MAP_FAILED) {
    throw Error(hcclOutOfMemory, text("cannot map ", identity.bytes, " bytes of shared memory: ",
                                      system_error_text(errno), "; raise ulimit -v"));
  }
  madvise(data, identity.bytes, MADV_DONTFORK);
  std::shared_ptr<SharedSegment> segment(
      new SharedSegment(static_cast<std::byte*>(data), identity.bytes));
  entry = segment;
  return segment;
}

SharedSegment::~SharedSegment() {
  munmap(data_, size_);
  const std::lock_guard lock(registry_mutex());
  std::erase_if(registry(), [](const auto& entry) { return entry.second.expired(); });
}

}  // namespace hccl
