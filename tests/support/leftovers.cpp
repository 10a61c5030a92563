// SPDX-License-Identifier: Apache-2.0
// Reads the names from /dev/shm and /proc/net/unix.
#include "leftovers.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::test {

void isolate_network() {
  if (unshare(CLONE_NEWNET) != 0) return;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  static_cast<void>(ioctl(fd, SIOCSIFFLAGS, &request));
  close(fd);
}

std::set<std::string> shared_names() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    names.insert(entry.path().string());
  }
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const std::size_t at = line.find('@');
    if (at != std::string::npos) names.insert(line.substr(at));
  }
  return names;
}

std::string leftovers(const std::set<std::string>& before) {
  std::string text;
  for (int attempt = 0; attempt < 100; ++attempt) {
    text.clear();
    for (const std::string& name : shared_names()) {
      if (!before.contains(name)) text += name + " ";
    }
    if (text.empty()) return text;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return text;
}

}  // namespace hccl::test
