// SPDX-License-Identifier: Apache-2.0
// Sets socket options, and reads Linux's TCP_INFO.
#include "transport/tcp_keep_alive.h"

#include <algorithm>
#include <chrono>

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace hccl::transport {
namespace {

// Minimum number of unanswered retransmissions and probes before a silent peer counts as lost.
constexpr int kTellingRetries = 3;

void set_option(int socket, int level, int name, int value) {
  setsockopt(socket, level, name, &value, sizeof(value));
}

}  // namespace

// Does not set TCP_USER_TIMEOUT, which would also end a connection to a stopped process whose
// receive buffer is full. Keep-alive does not probe while data is in flight; is_silent() covers
// that case.
void set_keep_alive(int socket, const ConnectionLimits& limits) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limits.silence).count();
  const int step = std::max(1, static_cast<int>(seconds / 4));
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, step);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, step);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

bool is_silent(int socket, Deadline::Duration limit) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  return info.tcpi_retransmits + info.tcpi_probes >= kTellingRetries &&
         std::chrono::milliseconds(info.tcpi_last_ack_recv) >= limit;
}

}  // namespace hccl::transport
