// SPDX-License-Identifier: Apache-2.0
// Opens listening sockets, and creates endpoints with a dialer or a listener.
#include "tcp/tcp_transport.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/text.h"
#include "tcp/tcp_endpoint.h"
#include "transport/dialer.h"
#include "transport/tcp_keep_alive.h"

#include <cerrno>

#include <netinet/in.h>
#include <sys/socket.h>

namespace hccl::tcp {
namespace {

using transport::Reach;
using transport::StreamKey;

constexpr int kBacklog = 4096;

FileDescriptor listen_on(const Address& address) {
  const int family = address.v6 ? AF_INET6 : AF_INET;
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const SocketAddress where = to_socket_address(address);
  if (socket.valid() && bind(socket.get(), where.get(), where.length) == 0 &&
      ::listen(socket.get(), kBacklog) == 0) {
    return socket;
  }
  throw Error(hcclSystemError,
              text("cannot listen on ", address.host_text(), ": ", system_error_text(errno), "; ",
                   advice_on(errno, "name another interface in HCCL_SOCKET_IFNAME")));
}

std::string describe(int /*socket*/, const SocketAddress& from) {
  return from_socket_address(from.get()).to_text();
}

// Returns a function that decides how to protect a connection to another rank.
transport::LeastProtection protection_of(std::optional<Protection> chosen, bool secret_is_private) {
  return [=](int socket) {
    if (chosen) return *chosen;
    const Address peer = remote_address(socket);
    const bool is_on_this_host = peer.is_loopback() || peer.same_host(local_address(socket));
    const bool encrypts = !is_on_this_host && secret_is_private && crypto::has_aes_instructions();
    return encrypts ? Protection::full : Protection::off;
  };
}

TcpAddresses parsed(std::span<const std::byte> address, int peer) {
  auto published = parse_tcp_addresses(address);
  if (!published) {
    throw Error(hcclInternalError, text("rank ", peer, " has published a malformed TCP address",
                                        "; install the same version of hccl on all ranks"));
  }
  return std::move(*published);
}

}  // namespace

TcpTransport::TcpTransport(const transport::Settings& settings)
    : Transport("tcp"),
      own_(settings.membership),
      limits_(settings.limits),
      least_protection_(
          protection_of(settings.config->encryption, settings.membership.secret_is_private)) {
  AddressChoice choice = choose_addresses(settings.interfaces, settings.config->socket_interfaces);
  remarks_ = std::move(choice.remarks);
  own_addresses_.network = network_number();
  listener_ = std::make_shared<transport::Listener>(
      listen(choice.offered), own_, limits_,
      transport::SocketFamily{.name = "tcp",
                              .describe = describe,
                              .objection = nullptr,
                              .least_protection = least_protection_});
  address_ = serialize(own_addresses_);
}

std::vector<FileDescriptor> TcpTransport::listen(const std::vector<Interface>& interfaces) {
  std::vector<FileDescriptor> sockets;
  for (const Interface& entry : interfaces) {
    Address address = entry.address;
    address.port = 0;
    sockets.push_back(listen_on(address));
    own_addresses_.addresses.push_back({local_address(sockets.back().get()), entry.prefix_length});
  }
  return sockets;
}

Reach TcpTransport::reach(std::span<const std::byte> peer_address) const {
  const auto theirs = parse_tcp_addresses(peer_address);
  if (!theirs) return {false, "its TCP address is malformed"};
  if (!usable_addresses(own_addresses_, *theirs).empty() &&
      !usable_addresses(*theirs, own_addresses_).empty()) {
    return {true, ""};
  }
  std::string list;
  for (const OfferedAddress& offered : theirs->addresses) {
    list += text(list.empty() ? "" : ", ", offered.address.host_text());
  }
  return {false, text("none of its addresses (", list, ") can be reached from this host")};
}

std::unique_ptr<transport::Endpoint> TcpTransport::open(int peer,
                                                        transport::ConnectionId connection,
                                                        std::span<const std::byte> peer_address) {
  const StreamKey key = transport::key_between(own_, peer, connection);
  std::unique_ptr<transport::ConnectionAttempt> connecting;
  if (key.to == own_.rank) {
    connecting = std::make_unique<transport::InboundConnection>(listener_, key);
  } else {
    std::vector<transport::DialTarget> targets;
    for (const Address& address : usable_addresses(own_addresses_, parsed(peer_address, peer))) {
      targets.push_back({to_socket_address(address), address.to_text()});
    }
    if (targets.empty()) {
      throw Error(
          hcclSystemError,
          text("rank ", own_.rank, " has no path to rank ", peer, ": ", reach(peer_address).why_not,
               "; set HCCL_SOCKET_IFNAME to interfaces on the same network"));
    }
    connecting = std::make_unique<transport::Dialer>(std::move(targets), own_, key, limits_,
                                                     transport::set_keep_alive, least_protection_);
  }
  return std::make_unique<TcpEndpoint>(own_.rank, peer, std::move(connecting), limits_);
}

transport::MakeResult make_transport(const transport::Settings& settings) {
  return {std::make_unique<TcpTransport>(settings), ""};
}

}  // namespace hccl::tcp
