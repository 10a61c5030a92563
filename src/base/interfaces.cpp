// SPDX-License-Identifier: Apache-2.0
// Lists the interfaces with getifaddrs(), and chooses one of them.
#include "base/interfaces.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <ifaddrs.h>
#include <net/if.h>

namespace hccl {
namespace {

// Name prefixes of virtual interfaces (see is_virtual()).
constexpr std::array<std::string_view, 3> kVirtual{"docker", "tunl", "virbr"};
constexpr std::string_view kLoopback = "lo";

using Accept = std::function<bool(const Interface&)>;

std::optional<Interface> first_match(const std::vector<Interface>& interfaces,
                                     const Accept& accept) {
  for (const bool v6 : {false, true}) {
    for (const Interface& candidate : interfaces) {
      const Address& address = candidate.address;
      if (address.v6 != v6 || (v6 && address.is_link_local())) continue;
      if (accept(candidate)) return candidate;
    }
  }
  return std::nullopt;
}

std::string describe(const std::vector<Interface>& interfaces) {
  std::string list;
  for (const Interface& entry : interfaces) {
    list += text(list.empty() ? "" : ", ", entry.name, " (", entry.address.host_text(), ')');
  }
  return list.empty() ? "none" : list;
}

// Calls visit(prefix) for the comma-separated prefixes, in order, until a call returns true.
// Returns whether one did.
template <class Visit>
bool any_prefix(const std::string& prefixes, Visit visit) {
  for (std::size_t start = 0; start <= prefixes.size();) {
    const std::size_t end = std::min(prefixes.find(',', start), prefixes.size());
    const std::string_view prefix = std::string_view(prefixes).substr(start, end - start);
    start = end + 1;
    if (!prefix.empty() && visit(prefix)) return true;
  }
  return false;
}

std::optional<Interface> by_prefix(const std::vector<Interface>& interfaces,
                                   const std::string& prefixes) {
  std::optional<Interface> match;
  any_prefix(prefixes, [&](std::string_view prefix) {
    match = first_match(interfaces,
                        [&](const Interface& entry) { return entry.name.starts_with(prefix); });
    return match.has_value();
  });
  return match;
}

// Throws Error(hcclSystemError) if loopback is down, as it is in a new network namespace, and
// either no other interface is up or `prefixes` names only loopback.
void refuse_loopback_that_is_down(const std::vector<Interface>& interfaces,
                                  std::string_view prefixes) {
  const bool is_up =
      std::ranges::any_of(interfaces, [](const Interface& entry) { return entry.loopback; });
  if (is_up || (!interfaces.empty() && prefixes != kLoopback)) return;
  throw Error(hcclSystemError,
              "the loopback interface is down, as it is in a new network namespace; bring it up: "
              "ip link set lo up");
}

int prefix_length_of(const sockaddr* netmask) {
  if (netmask == nullptr) return 0;
  const Address mask = from_socket_address(netmask);
  int length = 0;
  for (const std::uint8_t byte : mask.bytes) length += std::popcount(byte);
  return length;
}

}  // namespace

std::vector<Interface> local_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    throw Error(hcclSystemError,
                text("cannot list the network interfaces: ", system_error_text(errno), "; ",
                     advice_on(errno, "allow netlink sockets")));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    interfaces.push_back({entry->ifa_name, from_socket_address(entry->ifa_addr),
                          (entry->ifa_flags & IFF_LOOPBACK) != 0,
                          prefix_length_of(entry->ifa_netmask)});
  }
  return interfaces;
}

std::string connection_text(const Address& local, const Address& remote) {
  const std::string ends = text(local.to_text(), " to ", remote.to_text());
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return ends;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const int family = entry->ifa_addr == nullptr ? AF_UNSPEC : entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (from_socket_address(entry->ifa_addr).same_host(local))
      return text(entry->ifa_name, ' ', ends);
  }
  return ends;
}

bool is_virtual(const Interface& candidate) {
  // A veth interface whose address is link-local belongs to a container. With any other address, it
  // may lead to another host.
  if (candidate.name.starts_with("veth")) return candidate.address.is_link_local();
  return std::ranges::any_of(
      kVirtual, [&](std::string_view prefix) { return candidate.name.starts_with(prefix); });
}

bool is_named(const Interface& candidate, const std::string& prefixes) {
  return any_prefix(prefixes,
                    [&](std::string_view prefix) { return candidate.name.starts_with(prefix); });
}

void refuse_interface_names(const std::vector<Interface>& interfaces, const std::string& prefixes) {
  refuse_loopback_that_is_down(interfaces, prefixes);
  throw Error(hcclInvalidArgument,
              text("HCCL_SOCKET_IFNAME=", quoted(prefixes), " matches no interface with a usable ",
                   "address; name one of: ", describe(interfaces)));
}

Interface choose_interface(const std::vector<Interface>& interfaces, const std::string& prefixes) {
  std::optional<Interface> choice;
  if (!prefixes.empty()) {
    choice = by_prefix(interfaces, prefixes);
    if (choice) return *choice;
    refuse_interface_names(interfaces, prefixes);
  }
  choice = first_match(
      interfaces, [](const Interface& entry) { return !entry.loopback && !is_virtual(entry); });
  if (!choice) choice = first_match(interfaces, [](const Interface& e) { return e.loopback; });
  if (choice) return *choice;
  refuse_loopback_that_is_down(interfaces, kLoopback);
  throw Error(hcclSystemError,
              text("no network interface has an address to listen on (found: ",
                   describe(interfaces), "); give an interface an IPv4 or a global IPv6 address"));
}

}  // namespace hccl
