// SPDX-License-Identifier: Apache-2.0
#include "base/errno_advice.h"

#include <cerrno>

namespace hccl {

std::string advice_on(int error, const char* otherwise) {
  switch (error) {
    case EMFILE:
      return "raise ulimit -n";
    case ENFILE:
      return "raise fs.file-max, or end programs that hold many files open";
    case ENOMEM:
    case ENOBUFS:
      return "free memory on this host, or raise the container's memory limit";
    case ENOSYS:
      return "this kernel or sandbox lacks the system call: use Linux 5.3 or later, and a sandbox "
             "that allows the call";
    case EPERM:
    case EACCES:
      return "allow the system call in the sandbox of this process (seccomp, AppArmor or SELinux)";
    default:
      return otherwise;
  }
}

std::string advice_on_mapping(int error) {
  if (error == ENOMEM) return "raise ulimit -v or vm.max_map_count, or free memory on this host";
  return advice_on(error, "report this as a bug in hccl");
}

std::string advice_on_thread(int error) {
  if (error == EAGAIN) return "raise ulimit -u, or the container's process limit";
  if (error == ENOMEM) return "raise ulimit -v, or free memory on this host";
  return advice_on(error, "report this as a bug in hccl");
}

}  // namespace hccl
