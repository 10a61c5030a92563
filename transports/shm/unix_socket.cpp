// SPDX-License-Identifier: Apache-2.0
// Passes descriptors over abstract unix sockets with SCM_RIGHTS.
#include "shm/unix_socket.h"

#include "base/abstract_socket.h"
#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>

namespace hccl::shm {
namespace {

constexpr int kBacklog = 4096;

// A message of one byte with room for one descriptor.
struct FileMessage {
  FileMessage() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  FileMessage(const FileMessage&) = delete;
  FileMessage& operator=(const FileMessage&) = delete;

  std::byte byte{0};
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
};

}  // namespace

std::string name_text(const SocketName& name) { return abstract_name("hccl-stream-", name); }

SocketAddress abstract_address(const SocketName& name) {
  return hccl::abstract_address(name_text(name));
}

FileDescriptor listen_on(const SocketName& name) {
  FileDescriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const SocketAddress where = abstract_address(name);
  if (listener.valid() && bind(listener.get(), where.get(), where.length) == 0 &&
      listen(listener.get(), kBacklog) == 0) {
    return listener;
  }
  throw Error(hcclSystemError,
              text("cannot listen on an abstract unix socket: ", system_error_text(errno), "; ",
                   advice_on(errno, "allow unix sockets")));
}

bool send_file(int socket, const FileDescriptor& file) {
  FileMessage with;
  cmsghdr* const header = CMSG_FIRSTHDR(&with.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = file.get();
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return sendmsg(socket, &with.message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

Arrival receive_file(int socket, FileDescriptor& file) {
  FileMessage with;
  const ssize_t count = recvmsg(socket, &with.message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Arrival::none_yet;
  if (count <= 0) return Arrival::closed;
  const cmsghdr* const header = CMSG_FIRSTHDR(&with.message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    file = FileDescriptor(fd);
  }
  return Arrival::arrived;
}

}  // namespace hccl::shm
