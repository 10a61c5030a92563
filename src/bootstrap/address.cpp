// SPDX-License-Identifier: Apache-2.0
// Conversions between addresses, socket addresses and text; numeric forms never ask a name server.
#include "bootstrap/address.h"

#include "base/config.h"
#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/parse.h"
#include "base/quiet_thread.h"
#include "base/text.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <optional>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

namespace hccl::bootstrap {
namespace {

constexpr std::size_t kMostAddresses = 8;

[[noreturn]] void refuse(const std::string& comm_id, const std::string& why) {
  throw Error(hcclInvalidArgument, text("HCCL_COMM_ID=", quoted(comm_id), ": ", why,
                                        "; set it to address:port, e.g. 127.0.0.1:5555, "
                                        "[::1]:5555 or localhost:5555"));
}

struct Answer {
  int status = 0;
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list{nullptr, &freeaddrinfo};
};

Answer ask(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  Answer answer;
  answer.status = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (answer.status == 0) answer.list.reset(list);
  return answer;
}

// A name server that is silent holds up a thread of its own, not the caller.
Answer ask_name_servers(const std::string& comm_id, const std::string& host) {
  std::packaged_task<Answer()> task([host] { return ask(host, 0); });
  std::future<Answer> answer = task.get_future();
  start_quiet_thread(std::move(task)).detach();
  const std::chrono::duration<double> limit = config()->init_timeout;
  if (limit.count() > 0 && answer.wait_for(limit) != std::future_status::ready) {
    throw Error(hcclSocketError,
                text("HCCL_COMM_ID=", quoted(comm_id), ": no name server has answered for ",
                     quoted(host), " within ", limit.count(),
                     " s; set it to a numeric address, or see /etc/resolv.conf"));
  }
  return answer.get();
}

std::vector<Address> look_up(const std::string& comm_id, const std::string& host) {
  Answer answer = ask(host, AI_NUMERICHOST);
  if (answer.status != 0) answer = ask_name_servers(comm_id, host);
  // A bare system (a fresh chroot) has no /etc/hosts; the name means this all the same.
  if (answer.status != 0 && host == "localhost") answer = ask("127.0.0.1", AI_NUMERICHOST);
  if (answer.status != 0)
    refuse(comm_id, text("no address for ", quoted(host), ": ", gai_strerror(answer.status)));
  const addrinfo* const list = answer.list.get();
  std::vector<Address> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    const Address address = from_socket_address(entry->ai_addr);
    if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
  }
  if (addresses.empty()) refuse(comm_id, text(quoted(host), " has no IPv4 or IPv6 address"));
  std::ranges::stable_sort(addresses, {}, &Address::v6);
  if (addresses.size() > kMostAddresses) addresses.resize(kMostAddresses);
  return addresses;
}

}  // namespace

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
  if (!probe.valid()) return true;  // unknown: the stricter rules
  Address any_port = address;
  any_port.port = 0;
  const SocketAddress where = to_socket_address(any_port);
  return bind(probe.get(), where.get(), where.length) == 0;
}

std::vector<Address> parse_comm_id(const std::string& comm_id) {
  const std::optional<HostAndPort> parts = parse_host_and_port(comm_id);
  if (!parts) refuse(comm_id, "not an address and a port from 1 to 65535");
  std::vector<Address> addresses = look_up(comm_id, parts->host);
  for (Address& address : addresses) address.port = parts->port;
  return addresses;
}

}  // namespace hccl::bootstrap
