// SPDX-License-Identifier: Apache-2.0
// Passes descriptors over abstract unix sockets with SCM_RIGHTS.
#include "shm/unix_socket.h"

#include "base/abstract_socket.h"
#include "base/passed_descriptors.h"

#include <cerrno>
#include <cstddef>
#include <deque>
#include <utility>

#include <sys/socket.h>

namespace hccl::shm {
namespace {

// A message of one byte with room for one descriptor.
struct FileMessage {
  FileMessage() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
  }
  FileMessage(const FileMessage&) = delete;
  FileMessage& operator=(const FileMessage&) = delete;

  std::byte byte{0};
  iovec part{&byte, 1};
  DescriptorBuffer<1> control;
  msghdr message{};
};

}  // namespace

std::string name_text(const SocketName& name) { return abstract_name("hccl-stream-", name); }

SocketAddress abstract_address(const SocketName& name) {
  return hccl::abstract_address(name_text(name));
}

FileDescriptor listen_on(const SocketName& name) { return listen_on_abstract(name_text(name)); }

bool send_file(int socket, const FileDescriptor& file) {
  FileMessage with;
  const int fd = file.get();
  attach_descriptors(with.message, with.control.bytes, {&fd, 1});
  return sendmsg(socket, &with.message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

Arrival receive_file(int socket, FileDescriptor& file) {
  FileMessage with;
  std::deque<FileDescriptor> taken;
  with.message.msg_control = with.control.bytes.data();
  with.message.msg_controllen = with.control.bytes.size();
  const ssize_t count = recvmsg(socket, &with.message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Arrival::none_yet;
  if (count <= 0) return Arrival::closed;
  static_cast<void>(take_descriptors(with.message, taken));
  if (!taken.empty()) file = std::move(taken.front());
  return Arrival::arrived;
}

}  // namespace hccl::shm
