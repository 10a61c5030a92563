// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/node_socket.h"

#include "base/abstract_socket.h"
#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <cerrno>

#include <sys/socket.h>

namespace hccl::bootstrap {
namespace {

SocketAddress node_address(const SocketName& name) {
  return abstract_address(abstract_name("hccl-rank-", name));
}

FileDescriptor node_socket() {
  FileDescriptor result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result.valid()) {
    throw Error(hcclSystemError, text("cannot make a unix socket: ", system_error_text(errno), "; ",
                                      advice_on(errno, "allow unix sockets")));
  }
  return result;
}

}  // namespace

FileDescriptor listen_on_node(const SocketName& name) {
  FileDescriptor listener = node_socket();
  const SocketAddress where = node_address(name);
  if (bind(listener.get(), where.get(), where.length) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    throw Error(hcclSystemError,
                text("cannot listen on an abstract unix socket: ", system_error_text(errno), "; ",
                     advice_on(errno, "allow unix sockets")));
  }
  return listener;
}

FileDescriptor connect_to_node(const SocketName& name) {
  FileDescriptor socket = node_socket();
  const SocketAddress where = node_address(name);
  while (connect(socket.get(), where.get(), where.length) != 0) {
    if (errno == EINTR) continue;
    const int why = errno;
    socket.reset();
    errno = why;
    break;
  }
  return socket;
}

}  // namespace hccl::bootstrap
