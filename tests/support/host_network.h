// SPDX-License-Identifier: Apache-2.0
// Emulates hosts with the network namespaces of hosts.sh, each with its own address. The hosts
// exist for the lifetime of the object.
#pragma once

#include <string>
#include <vector>

namespace hccl::test {

class HostNetwork {
 public:
  // Returns why this machine cannot emulate hosts, or an empty string if it can.
  [[nodiscard]] static std::string why_not();

  // Returns why this machine cannot intercept connections, or an empty string if it can.
  [[nodiscard]] static std::string why_not_intercept();

  explicit HostNetwork(int hosts);
  // Kills the processes that run on the hosts.
  ~HostNetwork();
  HostNetwork(const HostNetwork&) = delete;
  HostNetwork& operator=(const HostNetwork&) = delete;

  // Return the name of a host's network namespace, and the host's address.
  [[nodiscard]] std::string name(int host) const;
  [[nodiscard]] static std::string address(int host);
  // Moves the calling process to a host. Must be called before the process starts threads.
  void enter(int host) const;
  // Disconnects the host from the network.
  void cut(int host) const { run("cut", std::to_string(host)); }
  // Redirects the TCP connections that the host opens, except those of `user`, to its own port
  // `port`.
  void intercept(int host, int port, unsigned user) const;
  // Limits the send rate of each host to `rate`, such as "1gbit".
  void limit(const std::string& rate) const { run("limit", rate); }

 private:
  void run(const std::string& action, const std::string& argument = "") const;

  std::string tag_;
};

}  // namespace hccl::test
