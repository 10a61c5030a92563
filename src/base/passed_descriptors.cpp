// SPDX-License-Identifier: Apache-2.0
#include "base/passed_descriptors.h"

#include <cstring>

namespace hccl {

void attach_descriptors(msghdr& message, std::span<std::byte> buffer,
                        std::span<const int> descriptors) noexcept {
  message.msg_control = buffer.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return;  // cannot happen: the buffer has room
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
}

bool take_descriptors(msghdr& message, std::deque<FileDescriptor>& taken) {
  bool all = (message.msg_flags & MSG_CTRUNC) == 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t found = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < found; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      taken.emplace_back(fd);
      all = all && taken.back().valid();
    }
  }
  return all;
}

}  // namespace hccl
