// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/node_socket.h"

#include "base/abstract_socket.h"
#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <cerrno>
#include <string>

#include <sys/socket.h>

namespace hccl::bootstrap {
namespace {

std::string name_of(const SocketName& name) { return abstract_name("hccl-rank-", name); }

}  // namespace

FileDescriptor listen_on_node(const SocketName& name) { return listen_on_abstract(name_of(name)); }

FileDescriptor connect_to_node(const SocketName& name) {
  FileDescriptor result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result.valid()) {
    throw Error(hcclSystemError, text("cannot create a unix socket: ", system_error_text(errno),
                                      "; ", advice_on(errno, "allow unix sockets")));
  }
  if (const int error = connect_to_abstract(result, name_of(name)); error != 0) {
    result.reset();
    errno = error;
  }
  return result;
}

}  // namespace hccl::bootstrap
