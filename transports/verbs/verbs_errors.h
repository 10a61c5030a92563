// SPDX-License-Identifier: Apache-2.0
// Describes completion statuses, asynchronous events and failed registrations, each with its likely
// cause and one remedy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

namespace hccl::verbs {

// The two ends of a queue pair, for error texts.
struct ConnectionEnds {
  int own_rank = -1;
  int peer_rank = -1;
  std::string peer_host;
  std::string device;
  int port = 0;
  std::string own_gid;
  std::string peer_gid;
  std::uint32_t mtu = 0;  // of the path, in bytes
};

enum class Severity : std::uint8_t {
  peer_lost,    // the peer, its host or the path to it has failed; reported as PeerLost
  port_down,    // this host's port has lost its link; its connections fail until the link is back
  device_gone,  // the NIC can no longer be used
  own_fault,    // this library made an invalid request
  ignorable,
};

[[nodiscard]] Severity severity_of(ibv_wc_status status);
[[nodiscard]] Severity severity_of(ibv_event_type event);

// Returns a description of a completion. A status that verbs.h does not define is described by its
// number.
[[nodiscard]] std::string describe_completion(ibv_wc_status status, std::uint32_t vendor_error,
                                              const ConnectionEnds& ends);
// Returns a description of a receive that has failed and was not flushed. A receive needs no
// memory, so it fails only if the device has refused the peer's write.
[[nodiscard]] std::string describe_refused_write(ibv_wc_status status, const ConnectionEnds& ends);
// Returns a description of an event. `port` is the event's port_num, or 0 if it has none.
[[nodiscard]] std::string describe_event(ibv_event_type event, const std::string& device, int port);

// Returns the soft RLIMIT_MEMLOCK in bytes, or RLIM_INFINITY if there is no limit.
[[nodiscard]] std::uint64_t locked_memory_limit();
// Returns the error text of an ibv_reg_mr() that failed with `error_number`: "cannot register N
// bytes with DEVICE: ...".
[[nodiscard]] std::string memlock_advice(std::size_t bytes, int error_number,
                                         const std::string& device,
                                         std::uint64_t limit = locked_memory_limit());

}  // namespace hccl::verbs
