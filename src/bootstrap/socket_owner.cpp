// SPDX-License-Identifier: Apache-2.0
// Queries sock_diag(7) for a socket with given local and remote addresses.
#include "bootstrap/socket_owner.h"

#include "base/address.h"
#include "base/file_descriptor.h"
#include "base/retry.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace hccl::bootstrap {
namespace {

constexpr timeval kPatience{1, 0};
constexpr std::uint32_t kLoopbackInterface = 1;  // its index in each network namespace

struct DiagnosticRequest {
  nlmsghdr header{};
  inet_diag_req_v2 body{};
};

DiagnosticRequest request_for(const Address& theirs, const Address& ours) {
  DiagnosticRequest request;
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = theirs.v6 ? AF_INET6 : AF_INET;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0U;
  request.body.id.idiag_sport = htons(theirs.port);
  request.body.id.idiag_dport = htons(ours.port);
  std::memcpy(&request.body.id.idiag_src, theirs.bytes.data(), theirs.bytes.size());
  std::memcpy(&request.body.id.idiag_dst, ours.bytes.data(), ours.bytes.size());
  // Connections within a machine pass through the loopback interface. Without its index, the kernel
  // does not find sockets that are bound to it (SO_BINDTODEVICE).
  request.body.id.idiag_if = kLoopbackInterface;
  request.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return request;
}

// Returns the owner of the socket whose local address is `theirs` and whose remote address is
// `ours`.
SocketOwner tcp_owner(const Address& theirs, const Address& ours) noexcept {
  using Knowledge = SocketOwner::Knowledge;
  const FileDescriptor netlink(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink.valid()) {
    return {is_resource_shortage(errno) ? Knowledge::none : Knowledge::unknown};
  }
  setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  const DiagnosticRequest request = request_for(theirs, ours);
  const ssize_t asked = retried([&] { return send(netlink.get(), &request, sizeof(request), 0); });
  if (asked < 0 && is_memory_shortage(errno)) return {Knowledge::none};
  if (asked != static_cast<ssize_t>(sizeof(request))) return {Knowledge::unknown};
  alignas(nlmsghdr) std::array<std::byte, 4096> buffer{};
  const ssize_t count = recv(netlink.get(), buffer.data(), buffer.size(), 0);
  if (count < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(std::int32_t)))) return {Knowledge::unknown};
  nlmsghdr header{};
  std::memcpy(&header, buffer.data(), sizeof(header));
  if (header.nlmsg_type == NLMSG_ERROR) {
    std::int32_t error = 0;
    std::memcpy(&error, buffer.data() + NLMSG_HDRLEN, sizeof(error));
    return {error == -ENOENT ? Knowledge::none : Knowledge::unknown};
  }
  inet_diag_msg answer{};
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      count < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(answer)))) {
    return {Knowledge::unknown};
  }
  std::memcpy(&answer, buffer.data() + NLMSG_HDRLEN, sizeof(answer));
  // A socket that has been closed has no owner, although the kernel then reports user 0.
  if (answer.id.idiag_sport != request.body.id.idiag_sport ||
      answer.id.idiag_dport != request.body.id.idiag_dport || answer.idiag_inode == 0) {
    return {Knowledge::none};
  }
  return {Knowledge::known, answer.idiag_uid};
}

}  // namespace

bool peer_is_local(int socket) noexcept {
  const Address peer = remote_address(socket);
  return peer.is_loopback() || peer.same_host(local_address(socket)) || is_of_this_machine(peer);
}

// The addresses of the peer's socket are those of this end, exchanged.
SocketOwner tcp_peer_owner(int socket) noexcept {
  return tcp_owner(remote_address(socket), local_address(socket));
}

SocketOwner tcp_listener_owner(const Address& address) noexcept {
  return tcp_owner(address, {.v6 = address.v6});
}

}  // namespace hccl::bootstrap
