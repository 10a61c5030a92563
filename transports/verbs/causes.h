// SPDX-License-Identifier: Apache-2.0
// The meaning of a completion status, an asynchronous event or a failed registration for people:
// the likely cause, and one thing to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

namespace hccl::verbs {

// Both ends of a queue pair, for texts.
struct Link {
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
  peer_lost,    // the peer, its host or the way to it is gone: PeerLost
  port_down,    // this host's port has no link: whoever uses it is cut off until it comes back
  device_gone,  // nothing of the device can be used any more
  own_fault,    // this library asked for what cannot be done
  ignorable,
};

[[nodiscard]] Severity severity_of(ibv_wc_status status);
[[nodiscard]] Severity severity_of(ibv_event_type event);

// The status is a number of the device's: one that verbs.h does not know is described as well.
[[nodiscard]] std::string describe_completion(ibv_wc_status status, std::uint32_t vendor_error,
                                              const Link& link);
// `port`: the event's port_num where it has one, else 0.
[[nodiscard]] std::string describe_event(ibv_event_type event, const std::string& device, int port);

// The soft RLIMIT_MEMLOCK in bytes; RLIM_INFINITY: none.
[[nodiscard]] std::uint64_t locked_memory_limit();
// Words the error of an ibv_reg_mr that failed with `error_number`: "cannot register N bytes with
// DEVICE: ...".
[[nodiscard]] std::string memlock_advice(std::size_t bytes, int error_number,
                                         const std::string& device,
                                         std::uint64_t limit = locked_memory_limit());

}  // namespace hccl::verbs
