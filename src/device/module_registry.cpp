// SPDX-License-Identifier: Apache-2.0
// Claims by abstract socket name.
#include "device/module_registry.h"

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>

namespace hccl::device {

std::optional<FileDescriptor> claim_module(std::uint32_t id) {
  // A hash of fixed meaning: processes of one box must agree on it.
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : box_identity()) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  }
  const std::string name = text("hccl-module-", std::hex, hash, "-", std::dec, id);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(),
            address.sun_path + 1);  // a leading zero byte: the abstract namespace
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) {
    throw Error(hcclSystemError, text("cannot claim module ", id, ": ", system_error_text(errno)));
  }
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return socket;
  if (errno == EADDRINUSE) return std::nullopt;
  throw Error(hcclSystemError, text("cannot claim module ", id, ": ", system_error_text(errno)));
}

}  // namespace hccl::device
