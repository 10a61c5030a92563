// SPDX-License-Identifier: Apache-2.0
#include "multinode/multi_node_stream.h"

#include "base/cancellation.h"
#include "base/scope_exit.h"
#include "multinode/multi_node_backend.h"
#include "multinode/strided_memory.h"
#include "network/averaging.h"
#include "network/call_memory.h"
#include "node/host_staging.h"
#include "node/wait_observer.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <exception>

namespace hccl::multinode {
namespace {

// Connections of columns are numbered from here on; those between all ranks have lower numbers.
constexpr std::uint32_t kFirstColumnConnection = 1 << 16;

}  // namespace

// Passes the engine's waits and mismatches during a part to the watchdog of the whole call.
class MultiNodeStream::PartObserver final : public node::WaitObserver {
 public:
  PartObserver(network::CallWatchdog& watch, std::vector<int>& awaited,
               transport::WaitSet& wait_set)
      : watch_(watch), awaited_(awaited), wait_set_(wait_set) {}

  void on_sleep(const std::vector<int>& awaited, bool first) override {
    awaited_ = awaited;
    watch_.on_attempt();
    watch_.on_idle(first);
  }
  [[noreturn]] void on_mismatch(const std::string& text) override {
    watch_.throw_mismatch(network::CallMismatch(hcclInvalidUsage, text), wait_set_);
  }

 private:
  network::CallWatchdog& watch_;
  std::vector<int>& awaited_;
  transport::WaitSet& wait_set_;
};

// Tells an undivided call whether the next queued call may begin now and is not divided either:
// divided calls use other connections. next() never returns a call.
class MultiNodeStream::FlatLookahead final : public CallLookahead {
 public:
  FlatLookahead(CallLookahead& ahead, const NodeLayout& layout) : ahead_(ahead), layout_(layout) {}

  const CollectiveCall* next() override { return nullptr; }
  bool has_next() const override {
    if (!ahead_.has_next()) return false;
    const CollectiveCall* const call = ahead_.next();
    return call != nullptr && !CallParts::can_divide(layout_, *call);
  }
  bool host_is_waiting() const override { return ahead_.host_is_waiting(); }
  WaitBudget wait_budget() const override { return ahead_.wait_budget(); }

 private:
  CallLookahead& ahead_;
  const NodeLayout& layout_;
};

MultiNodeStream::MultiNodeStream(MultiNodeBackend& backend, network::StreamConnections& flat)
    : backend_(backend), flat_(flat), runner_(backend.network(), kFirstColumnConnection) {
  const NodeLayout& layout = backend.layout();
  const int column = layout.local_rank();
  if (!layout.has_column(column)) return;
  std::vector<int> members;
  for (const std::vector<int>& ranks : layout.topology().nodes())
    members.push_back(ranks[static_cast<std::size_t>(column)]);
  column_.emplace(backend.column_planner(), std::move(members), layout.node());
}

MultiNodeStream::~MultiNodeStream() = default;

void MultiNodeStream::begin_collectives(std::uint32_t ordinal) {
  lane_ = backend_.network().segment().make_lane(ordinal);
  flat_.begin_collectives(ordinal);
  runner_.set_ordinal(ordinal);
}

bool MultiNodeStream::release_staging() const noexcept {
  return lane_ == nullptr || lane_->await_release_of_staging(backend_.failed());
}

// Once this rank has posted parts of a call, peers may store into this rank's buffers. The call
// then runs even after a fault, so that the engine can end these parts.
bool MultiNodeStream::run(const CollectiveCall& call, std::uint64_t staging, CallLookahead& ahead) {
  if (!CallParts::can_divide(backend_.layout(), call)) {
    FlatLookahead flat_calls(ahead, backend_.layout());
    return flat_.run(call, staging, flat_calls);
  }
  if (ahead.wait_budget() != WaitBudget::unlimited) return false;
  CallParts parts(backend_.layout(), call, flat_.calls());
  if (!has_posted()) prepare(call, parts);
  // If the call fails, cut the connections, so that peers no longer store into this rank's memory.
  ScopeExit unless_done([this] { runner_.cut(); });
  run_parts(parts, call, staging, ahead);
  unless_done.dismiss();
  runner_.count_traffic(kTwoLevel);
  flat_.finish_call(call, kTwoLevel);
  return true;
}

void MultiNodeStream::prepare(const CollectiveCall& call, CallParts& parts) {
  static_cast<void>(flat_.wait_set());  // created before the check, so that a later fault rings it
  backend_.throw_if_failed();
  // Except in an all-reduce, columns and copies may access the program's buffers directly.
  if (call.collective != Collective::all_reduce) flat_.prepare_buffers(call);
  if (parts.exchanges_data()) parts.set_exchange(exchange_memory(call));
}

void MultiNodeStream::run_parts(const CallParts& parts, const CollectiveCall& call,
                                std::uint64_t staging, CallLookahead& ahead) {
  network::NetworkBackend& network = backend_.network();
  const auto name = [&] { return describe(call); };
  const auto awaited = [this] {
    return awaited_on_node_.empty() ? runner_.awaited() : awaited_on_node_;
  };
  PartsLookahead later(ahead, backend_.layout(), parts, flat_.calls());
  try {
    network::CallWatchdog watch(
        network,
        {{flat_.ordinal(), flat_.calls(), kTwoLevel}, true, name, awaited, &ahead, flat_.id()});
    PartObserver observer(watch, awaited_on_node_, flat_.wait_set());
    std::uint64_t index = 0;
    // After a failure, lets the engine end the other parts of this call that have been posted.
    ScopeExit unless_done([&] {
      while (++index < parts.size() && has_posted()) end_part(parts.at(index), staging, observer);
    });
    try {
      for (; index < parts.size(); ++index) {
        later.move_to(index);
        run_part(parts.at(index), staging, later, observer, watch);
      }
      unless_done.dismiss();
    } catch (const network::CallMismatch& mismatch) {
      watch.throw_mismatch(mismatch, flat_.wait_set());
    }
  } catch (const transport::PeerLost& lost) {
    network::throw_lost(network, flat_.wait_set(), name(), lost);
  }
}

void MultiNodeStream::run_part(const CallPart& part, std::uint64_t staging, PartsLookahead& ahead,
                               PartObserver& observer, network::CallWatchdog& watch) {
  if (part.scope == CallPart::Scope::node) {
    run_on_node(part.call, staging, &ahead, observer);
  } else if (part.scope == CallPart::Scope::copy) {
    copy(part.call);
  } else if (part.column == backend_.layout().local_rank()) {
    run_in_column(part, watch);
  }
}

// Ends a part after another part has failed. Ignores this part's error, because only the first
// error is reported.
void MultiNodeStream::end_part(const CallPart& part, std::uint64_t staging,
                               PartObserver& observer) noexcept {
  if (part.scope != CallPart::Scope::node) return;
  try {
    run_on_node(part.call, staging, nullptr, observer);
  } catch (const std::exception&) {
  }
}

void MultiNodeStream::run_on_node(const CollectiveCall& part, std::uint64_t staging,
                                  PartsLookahead* ahead, PartObserver& observer) {
  const ScopeExit at_end([this] { awaited_on_node_.clear(); });
  const node::NodeSegment& segment = backend_.network().segment();
  std::optional<node::HostStaging> staged;
  if (node::needs_staging(part, segment.rank(), segment.size()))
    staged.emplace(segment.arena(), staging, part, segment.rank(), segment.size());
  backend_.engine().execute(*lane_, staged ? staged->staged_call() : part, ahead,
                            staged ? &*staged : nullptr, &observer);
}

void MultiNodeStream::run_in_column(const CallPart& part, network::CallWatchdog& watch) {
  const CollectiveCall& call = part.call;
  const int rank = column_->rank();
  const int ranks = column_->size();
  const network::CallMemory send(backend_.network().arena(), call.send);
  const network::CallMemory recv(backend_.network().arena(), call.recv);
  const std::uint64_t block = chunk_bytes(call, ranks);
  StridedMemory blocks(recv.get(), std::max<std::uint64_t>(block, 1), part.stride);
  network::Memory& output = part.stride != 0 ? blocks : recv.get();
  const bool in_place =
      part.stride != 0 ? recv.get().address(0) + static_cast<std::uint64_t>(rank) * part.stride ==
                             send.get().address(0)
                       : is_in_place(call, rank, ranks);
  const planner::Plan plan =
      column_->planner().plan({call.collective, block, rank, std::max(call.root, 0), in_place});
  network::CallHeader header = network::CallHeader::of(*call.whole, plan, flat_.calls());
  if (call.collective == Collective::barrier) header.phase = network::CallHeader::Phase::agreement;
  static_cast<void>(
      runner_.run(*column_, {plan, call, header, send.get(), output}, flat_.wait_set(), watch));
  divide(call, output);
}

void MultiNodeStream::divide(const CollectiveCall& part, network::Memory& sums) {
  if (part.whole->reduction() != hcclAvg || !receives(part, column_->rank())) return;
  network::divide(*part.whole, sums, recv_bytes(part, column_->size()), backend_.layout().ranks());
}

void MultiNodeStream::copy(const CollectiveCall& part) {
  if (part.count == 0) return;
  const network::CallMemory from(backend_.network().arena(), part.send);
  const network::CallMemory to(backend_.network().arena(), part.recv);
  network::copy_memory(from.get(), to.get(), part.count * reduce::element_size(part.data_type()));
}

std::uint64_t MultiNodeStream::exchange_memory(const CollectiveCall& call) {
  const std::uint64_t bytes = CallParts::exchange_bytes(backend_.layout(), call);
  if (!device::is_device_address(call.send) && !device::is_device_address(call.recv))
    return host_exchange_.at_least(bytes).address(0);
  if (device_exchange_bytes_ < bytes) {
    const CancellationBlock block;  // the arena may release pages
    device_exchange_bytes_ = 0;
    device_exchange_.reset();
    device_exchange_.emplace(backend_.network().arena(), bytes, "an inter-node exchange buffer");
    device_exchange_bytes_ = bytes;
    backend_.network().register_memory(device_exchange_->address(), bytes);
  }
  return device_exchange_->address();
}

}  // namespace hccl::multinode
