// SPDX-License-Identifier: Apache-2.0
// Resolves host names. Numeric addresses are parsed without asking a name server.
#include "bootstrap/comm_id.h"

#include "base/config.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/quiet_thread.h"
#include "base/text.h"
#include "bootstrap/unique_id.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>

#include <netdb.h>

namespace hccl::bootstrap {
namespace {

[[noreturn]] void refuse(const std::string& comm_id, const std::string& why) {
  throw Error(hcclInvalidArgument, text("HCCL_COMM_ID=", quoted(comm_id), ": ", why,
                                        "; set it to host:port, e.g. 127.0.0.1:5555, "
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

// Queries the name servers on a separate thread, so that an unresponsive server cannot block the
// caller for longer than HCCL_INIT_TIMEOUT.
Answer ask_name_servers(const std::string& comm_id, const std::string& host) {
  std::packaged_task<Answer()> task([host] { return ask(host, 0); });
  std::future<Answer> answer = task.get_future();
  start_quiet_thread(std::move(task)).detach();
  const std::chrono::duration<double> limit = config()->init_timeout;
  if (limit.count() > 0 && answer.wait_for(limit) != std::future_status::ready) {
    throw Error(hcclSocketError,
                text("HCCL_COMM_ID=", quoted(comm_id), ": no name server answered for ",
                     quoted(host), " within ", limit.count(),
                     " s; set it to a numeric address, or check /etc/resolv.conf"));
  }
  return answer.get();
}

std::vector<Address> look_up(const std::string& comm_id, const std::string& host) {
  Answer answer = ask(host, AI_NUMERICHOST);
  if (answer.status != 0) answer = ask_name_servers(comm_id, host);
  // A minimal system, such as a fresh chroot, may lack /etc/hosts. "localhost" must work there too.
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

std::vector<Address> parse_comm_id(const std::string& comm_id) {
  const std::optional<HostAndPort> parts = parse_host_and_port(comm_id);
  if (!parts) refuse(comm_id, "not an address and a port from 1 to 65535");
  std::vector<Address> addresses = look_up(comm_id, parts->host);
  for (Address& address : addresses) address.port = parts->port;
  return addresses;
}

}  // namespace hccl::bootstrap
