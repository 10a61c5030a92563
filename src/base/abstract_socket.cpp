// SPDX-License-Identifier: Apache-2.0
// Looks a socket up by listing all unix sockets, because sock_diag(7) cannot search by name.
#include "base/abstract_socket.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace hccl {
namespace {

constexpr timeval kPatience{1, 0};
constexpr int kBacklog = 4096;  // not SOMAXCONN, which is 128 in some C libraries

bool ask(const FileDescriptor& netlink) noexcept {
  struct {
    nlmsghdr header{};
    unix_diag_req body{};
  } request;
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.sdiag_family = AF_UNIX;
  request.body.udiag_states = ~0U;
  request.body.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID;
  return send(netlink.get(), &request, sizeof(request), 0) == static_cast<ssize_t>(sizeof(request));
}

// Returns the owner of the socket that `message` describes. Returns nothing if the socket's name is
// not `name`, or if `message` does not contain the owner.
std::optional<uid_t> user_in(std::span<const std::byte> message, std::string_view name) noexcept {
  std::optional<uid_t> user;
  bool named = false;
  for (std::size_t at = NLMSG_LENGTH(sizeof(unix_diag_msg));
       at + sizeof(rtattr) <= message.size();) {
    rtattr attribute{};
    std::memcpy(&attribute, message.data() + at, sizeof(attribute));
    if (attribute.rta_len < sizeof(attribute) || at + attribute.rta_len > message.size()) break;
    const auto value = message.subspan(at + RTA_LENGTH(0), attribute.rta_len - RTA_LENGTH(0));
    if (attribute.rta_type == UNIX_DIAG_NAME && value.size() == name.size() + 1) {
      named =
          value[0] == std::byte{0} && std::memcmp(value.data() + 1, name.data(), name.size()) == 0;
    } else if (attribute.rta_type == UNIX_DIAG_UID && value.size() == sizeof(uid_t)) {
      std::memcpy(&user.emplace(), value.data(), sizeof(uid_t));
    }
    at += RTA_ALIGN(attribute.rta_len);
  }
  return named ? user : std::nullopt;
}

}  // namespace

std::string abstract_name(std::string_view prefix, std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name(prefix);
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<std::size_t>(byte);
    name += {kDigits[value / 16], kDigits[value % 16]};
  }
  return name;
}

SocketAddress abstract_address(std::string_view name) noexcept {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), &where.sun_path[1]);
  SocketAddress address;
  std::memcpy(&address.storage, &where, sizeof(where));
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

FileDescriptor try_listen_on_abstract(std::string_view name) noexcept {
  FileDescriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const SocketAddress where = abstract_address(name);
  if (listener.valid() && bind(listener.get(), where.get(), where.length) == 0 &&
      listen(listener.get(), kBacklog) == 0) {
    return listener;
  }
  const int why = errno;
  listener.reset();
  errno = why;
  return listener;
}

int connect_to_abstract(const FileDescriptor& socket, std::string_view name) noexcept {
  const SocketAddress where = abstract_address(name);
  while (connect(socket.get(), where.get(), where.length) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

FileDescriptor listen_on_abstract(std::string_view name) {
  FileDescriptor listener = try_listen_on_abstract(name);
  if (listener.valid()) return listener;
  throw Error(hcclSystemError,
              text("cannot listen on an abstract unix socket: ", system_error_text(errno), "; ",
                   advice_on(errno, "allow unix sockets")));
}

std::optional<uid_t> user_of_abstract_socket(std::string_view name) noexcept {
  const FileDescriptor netlink(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink.valid()) return std::nullopt;
  setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  if (!ask(netlink)) return std::nullopt;
  alignas(nlmsghdr) std::array<std::byte, 32768> buffer;
  while (true) {
    const ssize_t count = recv(netlink.get(), buffer.data(), buffer.size(), 0);
    if (count <= 0) return std::nullopt;
    std::span<const std::byte> rest(buffer.data(), static_cast<std::size_t>(count));
    while (rest.size() >= sizeof(nlmsghdr)) {
      nlmsghdr header{};
      std::memcpy(&header, rest.data(), sizeof(header));
      if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || header.nlmsg_len < sizeof(header) ||
          header.nlmsg_len > rest.size()) {
        return std::nullopt;  // NLMSG_DONE or an error
      }
      if (const auto user = user_in(rest.first(header.nlmsg_len), name)) return user;
      rest = rest.subspan(std::min<std::size_t>(rest.size(), NLMSG_ALIGN(header.nlmsg_len)));
    }
  }
}

}  // namespace hccl
