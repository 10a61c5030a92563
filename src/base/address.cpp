// SPDX-License-Identifier: Apache-2.0
// Converts between addresses, socket addresses and text.
#include "base/address.h"

#include "base/file_descriptor.h"
#include "base/text.h"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace hccl {

bool Address::is_loopback() const {
  if (!v6) return bytes[0] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](auto byte) { return byte == 0; }) &&
         bytes[15] == 1;
}

bool Address::is_link_local() const {
  if (!v6) return bytes[0] == 169 && bytes[1] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool Address::same_host(const Address& other) const {
  return v6 == other.v6 && bytes == other.bytes;
}

std::string Address::host_text() const {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), buffer.data(), buffer.size());
  return buffer.data();
}

std::string Address::to_text() const {
  return v6 ? text('[', host_text(), "]:", port) : text(host_text(), ':', port);
}

sockaddr* SocketAddress::get() { return static_cast<sockaddr*>(static_cast<void*>(&storage)); }

const sockaddr* SocketAddress::get() const {
  return static_cast<const sockaddr*>(static_cast<const void*>(&storage));
}

SocketAddress to_socket_address(const Address& address) {
  SocketAddress result;
  if (address.v6) {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(address.port);
    in6.sin6_scope_id = address.scope;
    std::memcpy(&in6.sin6_addr, address.bytes.data(), sizeof(in6.sin6_addr));
    std::memcpy(&result.storage, &in6, sizeof(in6));
    result.length = sizeof(in6);
  } else {
    sockaddr_in in4{};
    in4.sin_family = AF_INET;
    in4.sin_port = htons(address.port);
    std::memcpy(&in4.sin_addr, address.bytes.data(), sizeof(in4.sin_addr));
    std::memcpy(&result.storage, &in4, sizeof(in4));
    result.length = sizeof(in4);
  }
  return result;
}

Address from_socket_address(const sockaddr* address) {
  Address result;
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, address, sizeof(in6));
    result.v6 = true;
    result.port = ntohs(in6.sin6_port);
    result.scope = in6.sin6_scope_id;
    std::memcpy(result.bytes.data(), &in6.sin6_addr, sizeof(in6.sin6_addr));
  } else if (address->sa_family == AF_INET) {
    sockaddr_in in4{};
    std::memcpy(&in4, address, sizeof(in4));
    result.port = ntohs(in4.sin_port);
    std::memcpy(result.bytes.data(), &in4.sin_addr, sizeof(in4.sin_addr));
  }
  return result;
}

Address local_address(int socket) {
  SocketAddress address;
  if (getsockname(socket, address.get(), &address.length) != 0) return {};
  return from_socket_address(address.get());
}

Address remote_address(int socket) {
  SocketAddress address;
  if (getpeername(socket, address.get(), &address.length) != 0) return {};
  return from_socket_address(address.get());
}

bool is_of_this_machine(const Address& address) noexcept {
  const FileDescriptor probe(socket(address.v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return true;  // cannot be checked
  Address any_port = address;
  any_port.port = 0;
  const SocketAddress where = to_socket_address(any_port);
  return bind(probe.get(), where.get(), where.length) == 0;
}

}  // namespace hccl
