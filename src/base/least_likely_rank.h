// SPDX-License-Identifier: Apache-2.0
// Chooses the connection to drop if too many have not authenticated yet.
#pragma once

#include "base/address.h"

#include <algorithm>
#include <cstddef>

namespace hccl {

// Returns the oldest connection from which nothing has arrived, because a rank begins its handshake
// immediately. If something has arrived on all, but more than half of the connections come from one
// host, returns that host's oldest, so that a flood from one host does not displace the ranks of
// other hosts. Otherwise returns the oldest connection.
// `pending`: not empty, in order of arrival. has_heard(connection): whether anything has arrived.
// peer(connection): its other end's address.
template <class List, class HasHeard, class Peer>
[[nodiscard]] auto least_likely_rank(List& pending, const HasHeard& has_heard, const Peer& peer) {
  const auto silent = std::ranges::find_if_not(pending, has_heard);
  if (silent != pending.end()) return silent;
  const auto count_from_host = [&](const auto& one) {
    return static_cast<std::size_t>(std::ranges::count_if(
        pending, [&](const auto& other) { return peer(one).same_host(peer(other)); }));
  };
  const auto busiest = std::ranges::max_element(pending, {}, count_from_host);
  return count_from_host(*busiest) > pending.size() / 2 ? busiest : pending.begin();
}

}  // namespace hccl
