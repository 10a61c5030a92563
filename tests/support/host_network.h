// SPDX-License-Identifier: Apache-2.0
// Hosts with addresses of their own for ranks to run on: hosts.sh's network namespaces, which last
// as long as the object.
#pragma once

#include <string>
#include <vector>

namespace hccl::test {

class HostNetwork {
 public:
  // Returns why this machine can have none; empty if it can.
  [[nodiscard]] static std::string why_not();

  explicit HostNetwork(int hosts);
  // Kills what runs on the hosts.
  ~HostNetwork();
  HostNetwork(const HostNetwork&) = delete;
  HostNetwork& operator=(const HostNetwork&) = delete;

  // Namespace and address of a host.
  [[nodiscard]] std::string name(int host) const;
  [[nodiscard]] static std::string address(int host);
  // Moves the calling process to that host. Call it before the process starts threads.
  void enter(int host) const;
  // Cuts the host off: nothing reaches or leaves it any more.
  void cut(int host) const { run("cut", std::to_string(host)); }
  // Limits the rate at which each host sends to `rate`, such as "1gbit".
  void limit(const std::string& rate) const { run("limit", rate); }

 private:
  void run(const std::string& action, const std::string& argument = "") const;

  std::string tag_;
};

}  // namespace hccl::test
