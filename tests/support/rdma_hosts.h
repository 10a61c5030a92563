// SPDX-License-Identifier: Apache-2.0
// Hosts with one RDMA device each: the nodes of a virtual machine started by run-in-rxe-vm --nodes.
// Each node has its own network, host name, IPC and mount namespaces. A switch connects them. The
// hosts outlive a test, so this class undoes every change to them.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

namespace hccl::test {

class RdmaHosts {
 public:
  // Returns why this machine does not have `hosts` hosts, or an empty string if it does.
  [[nodiscard]] static std::string why_not(int hosts);

  // Undoes the changes that killed tests have left.
  RdmaHosts();
  // Undoes the changes of this test.
  ~RdmaHosts();
  RdmaHosts(const RdmaHosts&) = delete;
  RdmaHosts& operator=(const RdmaHosts&) = delete;

  [[nodiscard]] static std::string address(int host);
  [[nodiscard]] static std::string device(int host);
  // Moves the calling process to a host. Must be called before the process starts threads.
  static void enter(int host);

  // Disconnects the host from the switch: no packets pass, and the host's port is down.
  void cut(int host) const;
  void mend(int host) const;
  // Takes down the host's network interface, and with it the port of its RDMA device.
  void shut_interface(int host) const;
  // Drops a share, such as "1%", of the packets to and from the host. Ports stay up even at "100%".
  void lose(int host, const std::string& share) const;
  void lose_nothing(int host) const;
  [[nodiscard]] std::uint64_t packets_lost(int host) const;
  // Asks the driver to remove the RDMA device, which happens once no process uses it.
  void delete_device(int host) const;
  [[nodiscard]] static bool has_device(int host);
  // Limit the size in bytes of packets: those that the host's network interface sends, or those
  // that the switch passes to the host.
  void limit_frames(int host, int bytes) const;
  void limit_frames_at_switch(int host, int bytes) const;

  // Returns one line for each object of the given kind that a process holds on a host's device. The
  // kinds are queue pairs ("qp"), completion queues ("cq"), memory regions ("mr"), protection
  // domains ("pd") and contexts ("ctx").
  [[nodiscard]] static std::string resources(int host, const std::string& kind, pid_t process);
  // Returns the number of packets that a host's device has sent. Must be called on that host.
  [[nodiscard]] static std::uint64_t packets_sent(int host);

 private:
  static void change(const std::string& command, const std::string& undo);
};

}  // namespace hccl::test
