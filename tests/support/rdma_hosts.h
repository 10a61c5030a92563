// SPDX-License-Identifier: Apache-2.0
// Hosts with an RDMA device each for ranks to run on: the nodes of a virtual machine that
// run-in-rxe-vm --nodes has started (network, host name, IPC and mount namespaces on one switch).
// They outlive a test, so whatever is changed of them is changed back.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

namespace hccl::test {

class RdmaHosts {
 public:
  // Returns why this machine does not have that many hosts; empty if it has.
  [[nodiscard]] static std::string why_not(int hosts);

  // Undoes the changes that a killed test has left.
  RdmaHosts();
  // Undoes this test's changes.
  ~RdmaHosts();
  RdmaHosts(const RdmaHosts&) = delete;
  RdmaHosts& operator=(const RdmaHosts&) = delete;

  [[nodiscard]] static std::string address(int host);
  [[nodiscard]] static std::string device(int host);
  // Moves the calling process to that host. Call it before the process starts threads.
  static void enter(int host);

  // Pulls the host's cable out of the switch: nothing comes through, and the host's port is down.
  void cut(int host) const;
  void mend(int host) const;
  // Takes the host's own network interface down, and with it the RDMA device's port.
  void shut_interface(int host) const;
  // Drops this share of the packets to and from the host, such as "1%". No port notices, not even
  // of "100%".
  void lose(int host, const std::string& share) const;
  void lose_nothing(int host) const;
  [[nodiscard]] std::uint64_t packets_lost(int host) const;
  // Begins to remove the RDMA device; the driver waits until no process uses it.
  void delete_device(int host) const;
  [[nodiscard]] static bool has_device(int host);
  // The largest packets that the host's network interface sends, or that the switch lets through to
  // the host.
  void limit_frames(int host, int bytes) const;
  void limit_frames_at_switch(int host, int bytes) const;

  // Returns a line for each object of one kind that a process has on a host's device: queue pairs
  // ("qp"), completion queues ("cq"), memory regions ("mr"), protection domains ("pd"), contexts
  // ("ctx").
  [[nodiscard]] static std::string resources(int host, const std::string& kind, pid_t process);
  // That a host's device has sent; called on that host.
  [[nodiscard]] static std::uint64_t packets_sent(int host);

 private:
  static void change(const std::string& command, const std::string& undo);
};

}  // namespace hccl::test
