// SPDX-License-Identifier: Apache-2.0
// Uses open file description locks (F_OFD_SETLK). A process-associated lock (F_SETLK) would end as
// soon as the process closed any descriptor of the file, as is_locked() does.
#include "device/module_lock.h"

#include "base/text.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hccl::device {
namespace {

constexpr mode_t kOwnerOnly = S_IRWXU;

// Returns the candidate directories of this user, in order of preference. The parent of the first
// belongs to the user; the parents of the others are shared by all users.
std::array<std::string, 3> folders() {
  const uid_t user = geteuid();
  return {text("/run/user/", user, "/hccl"), text("/dev/shm/hccl-", user),
          text("/tmp/hccl-", user)};
}

// Opens the directory. Returns an invalid file descriptor and sets `why` if this fails, or if the
// directory belongs to another user or grants other users any access.
FileDescriptor own_folder(const std::string& path, std::string& why) {
  FileDescriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!folder.valid() || fstat(folder.get(), &status) != 0) {
    why = system_error_text(errno);
  } else if (status.st_uid != geteuid()) {
    why = text("belongs to user ", status.st_uid);
  } else if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    why = "is open to other users";
  } else {
    return folder;
  }
  return {};
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

FileDescriptor open_in(const FileDescriptor& folder, const std::string& name, int flags) {
  return FileDescriptor(
      openat(folder.get(), name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
}

}  // namespace

NameLock lock_name(const std::string& name) {
  std::string reasons;
  for (const std::string& path : folders()) {
    static_cast<void>(mkdir(path.c_str(), kOwnerOnly));
    std::string why;
    const FileDescriptor folder = own_folder(path, why);
    FileDescriptor file = folder.valid() ? open_in(folder, name, O_CREAT) : FileDescriptor();
    if (file.valid()) {
      struct flock lock = whole_file();
      if (fcntl(file.get(), F_OFD_SETLK, &lock) == 0) return {std::move(file), {}};
      if (errno == EAGAIN || errno == EACCES) return {};
    }
    if (folder.valid()) why = system_error_text(errno);
    reasons += text(reasons.empty() ? "" : ", ", path, ": ", why);
  }
  return {std::nullopt, reasons};
}

bool is_locked(const std::string& name) noexcept {
  for (const std::string& path : folders()) {
    std::string ignored;
    const FileDescriptor folder = own_folder(path, ignored);
    if (!folder.valid()) continue;
    const FileDescriptor file = open_in(folder, name, 0);
    struct flock lock = whole_file();
    if (file.valid() && fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
      return true;
  }
  return false;
}

}  // namespace hccl::device
