// SPDX-License-Identifier: Apache-2.0
// Waits on the board by polling with short sleeps.
#include "board.h"

#include "check.h"

#include <chrono>
#include <thread>

namespace hccl::test {
namespace {

template <class Condition>
void poll_until(Condition condition, const char* what) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    require(Clock::now() < end, join("waited a minute for ", what));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

std::size_t index_of(int slot) { return static_cast<std::size_t>(slot); }

}  // namespace

void Board::publish_id(int slot, const hcclUniqueId& id) {
  ids_.at(index_of(slot)) = id;
  id_ready_.at(index_of(slot)).store(1, std::memory_order_release);
}

hcclUniqueId Board::await_id(int slot) {
  const auto& ready = id_ready_.at(index_of(slot));
  poll_until([&] { return ready.load(std::memory_order_acquire) != 0; }, "a unique id");
  return ids_.at(index_of(slot));
}

void Board::barrier(int slot, int parties) {
  auto& arrivals = arrivals_.at(index_of(slot));
  const std::int64_t mine = arrivals.fetch_add(1, std::memory_order_acq_rel);
  const std::int64_t full = (mine / parties + 1) * parties;
  poll_until([&] { return arrivals.load(std::memory_order_acquire) >= full; }, "a barrier");
}

void Board::await(int slot, std::int64_t value) {
  const auto& one = counter(slot);
  poll_until([&] { return one.load(std::memory_order_acquire) >= value; }, "a counter");
}

std::atomic<std::int64_t>& Board::counter(int slot) { return counters_.at(index_of(slot)); }

}  // namespace hccl::test
