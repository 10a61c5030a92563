// SPDX-License-Identifier: Apache-2.0
#include "network/traffic.h"

namespace hccl::network {
namespace {

using transport::Counters;

void add_difference(Counters& sum, const Counters& now, const Counters& before) {
  sum.bytes_sent += now.bytes_sent - before.bytes_sent;
  sum.bytes_received += now.bytes_received - before.bytes_received;
  sum.sends += now.sends - before.sends;
  sum.receives += now.receives - before.receives;
}

}  // namespace

void Traffic::add(const transport::Endpoint& endpoint, Counters& seen, std::string_view algorithm) {
  const Counters now = endpoint.counters();
  if (now == seen) return;
  const std::lock_guard lock(mutex_);
  add_difference(by_peer_[static_cast<std::size_t>(endpoint.peer())], now, seen);
  seen = now;
  algorithm_ = algorithm;
}

void Traffic::set_algorithm(std::string_view algorithm) {
  const std::lock_guard lock(mutex_);
  algorithm_ = algorithm;
}

std::string Traffic::algorithm() const {
  const std::lock_guard lock(mutex_);
  return std::string(algorithm_);
}

Counters Traffic::with(int peer) const {
  const std::lock_guard lock(mutex_);
  return by_peer_[static_cast<std::size_t>(peer)];
}

Counters Traffic::with_all() const {
  const std::lock_guard lock(mutex_);
  Counters sum;
  for (const Counters& one : by_peer_) add_difference(sum, one, {});
  return sum;
}

}  // namespace hccl::network
