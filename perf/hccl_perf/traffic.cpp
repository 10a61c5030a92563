// SPDX-License-Identifier: Apache-2.0
#include "traffic.h"

#include <cstring>

// This function's address is null with the library for real devices, which lacks the function.
#pragma weak hcclEmulationTraffic

namespace hccl_perf {
namespace {

constexpr int kAll = -1;

void add_difference(Traffic& sum, const Traffic& now, const Traffic& before) {
  sum.bytes_sent += now.bytes_sent - before.bytes_sent;
  sum.bytes_received += now.bytes_received - before.bytes_received;
  sum.sends += now.sends - before.sends;
  sum.receives += now.receives - before.receives;
}

}  // namespace

void TrafficMeter::start() {
  counted_.assign(static_cast<std::size_t>(ranks_), {});
  resume();
}

void TrafficMeter::resume() {
  before_.clear();
  for (int peer = 0; peer < ranks_; ++peer) before_.push_back(with(peer));
}

void TrafficMeter::pause() {
  last_ = with(kAll);
  for (int peer = 0; peer < ranks_; ++peer) {
    const auto place = static_cast<std::size_t>(peer);
    add_difference(counted_[place], with(peer), before_[place]);
  }
}

Traffic TrafficMeter::total() const {
  Traffic sum{};
  std::memcpy(sum.algorithm, last_.algorithm, sizeof sum.algorithm);
  std::memcpy(sum.transport, last_.transport, sizeof sum.transport);
  for (const Traffic& one : counted_) {
    add_difference(sum, one, {});
    sum.peers += one.sends + one.receives > 0 ? 1 : 0;
  }
  return sum;
}

Traffic TrafficMeter::with(int peer) const {
  Traffic traffic{};
  std::strcpy(traffic.algorithm, "unknown");
  std::strcpy(traffic.transport, "unknown");
  auto* const ask = &hcclEmulationTraffic;
  if (peer != rank_ && ask != nullptr)
    static_cast<void>(ask(communicator_, peer, &traffic));  // unchanged on failure
  return traffic;
}

}  // namespace hccl_perf
