// SPDX-License-Identifier: Apache-2.0
// Chooses the connection to drop if too many have not authenticated yet.
#pragma once

#include "base/address.h"

#include <algorithm>
#include <cstddef>

namespace hccl {

// If more than half of the connections come from one host, considers only those, so that a flood
// from one host does not displace the ranks of other hosts. Returns the oldest connection from
// which nothing has arrived, because a rank begins its handshake immediately, or else the oldest.
// `pending`: not empty, in order of arrival. has_heard(connection): whether anything has arrived.
// peer(connection): the address of its other end.
template <class List, class HasHeard, class Peer>
[[nodiscard]] auto choose_victim(List& pending, const HasHeard& has_heard, const Peer& peer) {
  const auto count_from_host_of = [&](const auto& one) {
    return static_cast<std::size_t>(std::ranges::count_if(
        pending, [&](const auto& other) { return peer(one).same_host(peer(other)); }));
  };
  const auto busiest = std::ranges::max_element(pending, {}, count_from_host_of);
  const bool is_crowd = count_from_host_of(*busiest) > pending.size() / 2;
  const auto is_candidate = [&](const auto& one) {
    return !is_crowd || peer(one).same_host(peer(*busiest));
  };
  const auto silent = std::ranges::find_if(
      pending, [&](const auto& one) { return is_candidate(one) && !has_heard(one); });
  return silent != pending.end() ? silent : std::ranges::find_if(pending, is_candidate);
}

}  // namespace hccl
