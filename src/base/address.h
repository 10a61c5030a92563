// SPDX-License-Identifier: Apache-2.0
// An IPv4 or IPv6 address with a port, and its text forms.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <sys/socket.h>

namespace hccl {

struct Address {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes{};  // IPv4 uses the first four
  std::uint32_t scope = 0;               // zone index of a link-local IPv6 address
  std::uint16_t port = 0;

  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] bool is_link_local() const;
  // Returns whether the IP addresses are equal. Ignores ports and scopes.
  [[nodiscard]] bool same_host(const Address& other) const;
  [[nodiscard]] std::string host_text() const;
  [[nodiscard]] std::string to_text() const;  // such as "127.0.0.1:5000" or "[::1]:5000"

  friend bool operator==(const Address&, const Address&) = default;
};

// An address in the form that the socket functions accept.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);

  [[nodiscard]] sockaddr* get();
  [[nodiscard]] const sockaddr* get() const;
};

[[nodiscard]] SocketAddress to_socket_address(const Address& address);
// Returns 0.0.0.0:0 for a family other than AF_INET and AF_INET6.
[[nodiscard]] Address from_socket_address(const sockaddr* address);

// Returns whether an interface of this machine has the address. Also returns true if the check
// fails because the process cannot create a socket.
[[nodiscard]] bool is_of_this_machine(const Address& address) noexcept;

[[nodiscard]] Address local_address(int socket);
[[nodiscard]] Address remote_address(int socket);

}  // namespace hccl
