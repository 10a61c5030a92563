// SPDX-License-Identifier: Apache-2.0
// Before each sleep, checks for departed ranks, and then checks the time limits or calls the
// observer.
#include "node/operation_wait.h"

#include "base/error.h"
#include "base/text.h"
#include "base/wrapping.h"
#include "node/mailboxes.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

namespace hccl::node {

OperationWait::~OperationWait() {
  if (timer_.started() || has_slept_)
    node_.own_record().host_is_waiting.store(0, std::memory_order_relaxed);
}

void OperationWait::prepare_sleep() {
  if (op_.observer == nullptr) timer_.start();
  // Publishes whether this rank's program is blocked. A blocked program cannot make the call for
  // which a send or receive of another rank waits.
  const bool host_is_waiting = op_.ahead != nullptr && op_.ahead->host_is_waiting();
  node_.own_record().host_is_waiting.store(host_is_waiting ? op_.lane.ordinal() + 1 : 0,
                                           std::memory_order_relaxed);
  for (int rank = 0; rank < node_.size(); ++rank) {
    // Checks for departure first: a rank may have posted its part just before it departed.
    if (!node_.has_departed(rank) || op_.lane.has_posted(rank)) continue;
    node_.fault().raise(hcclSystemError, text(call_text(), ": ", node_.rank_text(rank),
                                              " has destroyed the communicator; every rank must "
                                              "make the same calls"));
    return;
  }
  if (op_.observer != nullptr) return notify_observer();
  timer_.check([this] { return call_text(); }, [this] { return delay_text(); });
}

void OperationWait::notify_observer() {
  bool all_posted = true;
  for (int rank = 0; rank < node_.size(); ++rank) all_posted &= op_.lane.has_posted(rank);
  std::vector<int> awaited;
  for (int rank = 0; rank < node_.size(); ++rank) {
    const bool delays = !op_.lane.has_posted(rank) || (all_posted && !delay_of(rank, true).empty());
    if (delays && rank != node_.rank()) awaited.push_back(node_.number_of(rank));
  }
  try {
    op_.observer->on_sleep(awaited, !std::exchange(has_slept_, true));
  } catch (const Error& error) {
    node_.fail(error.code(), error.what());
  } catch (const std::exception& error) {
    node_.fail(hcclInternalError, error.what());
  }
}

std::string OperationWait::call_text() const {
  const std::uint64_t number = op_.program_number();
  return text("op ", number, " of stream ", op_.lane.ordinal(), ", ",
              describe(program_call(op_.call)));
}

std::string OperationWait::delay_text() const {
  bool all_posted = true;
  for (int rank = 0; rank < node_.size(); ++rank) all_posted &= op_.lane.has_posted(rank);
  std::string list;
  for (int rank = 0; rank < node_.size(); ++rank) {
    const std::string delay = delay_of(rank, all_posted);
    if (!delay.empty()) list += text(list.empty() ? "" : "; ", node_.rank_text(rank), delay);
  }
  return list.empty() ? "all ranks have arrived" : list;
}

// Returns how `rank` delays the operation, or an empty string if it does not.
std::string OperationWait::delay_of(int rank, bool all_posted) const {
  const Lane& lane = op_.lane;
  if (node_.is_stopped(rank)) return " is stopped (SIGSTOP or a debugger)";
  if (!lane.has_posted(rank)) {
    const RankRecord& record = node_.record(rank);
    const std::uint64_t exchange = record.in_exchange.load(std::memory_order_relaxed);
    const std::uint32_t operation = record.in_operation.load(std::memory_order_relaxed);
    if (exchange != 0) return text(" is in ", describe(unpack_call(exchange)));
    if (operation == 0) return " has not made this call";
    if (operation - 1 == lane.ordinal()) return " is about to arrive";
    return text(" is in an operation on another stream (its stream ", operation - 1,
                " on this communicator)");
  }
  if (!all_posted) return {};
  if (op_.awaited_counter != nullptr) {
    const auto is_late = [&](int awaited) {
      return precedes((lane.slice_counters(awaited).*op_.awaited_counter).load(),
                      op_.awaited_count);
    };
    if (op_.awaited_ranks == AwaitedRanks::senders && !sends(op_.call, rank)) return {};
    if (op_.awaited_ranks == AwaitedRanks::in_order && rank > 0 && is_late(rank - 1)) return {};
    return is_late(rank) ? " has not finished its part of the copy through host memory" : "";
  }
  if (lane.slot(rank).slice.load(std::memory_order_relaxed) <= op_.slice_number)
    return " has not finished its part of the copy through host memory";
  if (lane.current_tile(rank).load(std::memory_order_relaxed) != 0)
    return " is still computing its part";
  if (op_.has_shares && !lane.has_computed_share(rank)) return " has not computed its part";
  return {};
}

}  // namespace hccl::node
