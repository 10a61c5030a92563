// SPDX-License-Identifier: Apache-2.0
// The network: posts, delivers and completes writes.
#include "fake_wire.h"

#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl::verbs::test {

FakeWire::Pair& FakeWire::pair_of(const ibv_qp* pair) { return *pairs_.at(pair->qp_num); }

FakeWire::Queue& FakeWire::queue_of(const ibv_cq* queue) { return *queues_.at(queue); }

void FakeWire::record_violation(const Pair& pair, const std::string& what) {
  violations_.push_back(text("queue pair ", pair.pair.qp_num, ": ", what));
}

int FakeWire::post(Pair& pair, const ibv_send_wr& request) {
  if (faults.post_send != 0) return faults.post_send;
  if (pair.pair.state != IBV_QPS_RTS && pair.pair.state != IBV_QPS_ERR) {
    record_violation(pair, "a write was posted before the pair was ready to send");
    return EINVAL;
  }
  if (pair.sends_in_use >= pair.most.max_send_wr) {
    record_violation(pair, "more writes were posted than max_send_wr");
    return ENOMEM;
  }
  Write write;
  write.id = request.wr_id;
  write.kind = request.opcode;
  write.signaled = (request.send_flags & IBV_SEND_SIGNALED) != 0;
  if (request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) write.immediate = request.imm_data;
  if (write.immediate && distorted_) write.immediate = htonl(*std::exchange(distorted_, {}));
  if (request.num_sge > 0) {
    const ibv_sge& part = *request.sg_list;
    const auto* const source = reinterpret_cast<const std::byte*>(part.addr);
    write.bytes.assign(source, source + part.length);
    write.local_key = part.lkey;
    if ((request.send_flags & IBV_SEND_INLINE) == 0) write.source = source;
    if (write.source == nullptr && part.length > pair.most.max_inline_data) {
      record_violation(pair, "an inline write exceeds max_inline_data");
      return EINVAL;
    }
  }
  if (request.opcode == IBV_WR_BIND_MW) {
    write.window = request.bind_mw.mw->handle;
    write.opened = request.bind_mw.bind_info;
    write.remote_key = request.bind_mw.rkey;
  } else if (request.opcode == IBV_WR_LOCAL_INV) {
    write.remote_key = request.invalidate_rkey;
  } else {
    write.address = request.wr.rdma.remote_addr;
    write.remote_key = request.wr.rdma.rkey;
  }
  pair.writes.push_back(std::move(write));
  ++pair.sends_in_use;
  if (pair.pair.state == IBV_QPS_ERR) end(pair, IBV_WC_WR_FLUSH_ERR, 0);
  while (prompt && advance()) continue;
  return 0;
}

bool FakeWire::can_deliver(const Pair& pair) {
  if (pair.pair.state != IBV_QPS_RTS || pair.arrived >= pair.writes.size()) return false;
  const ibv_wr_opcode kind = pair.writes[pair.arrived].kind;
  return kind == IBV_WR_BIND_MW || kind == IBV_WR_LOCAL_INV ||
         (pair.peer != nullptr &&
          (pair.peer->pair.state == IBV_QPS_RTR || pair.peer->pair.state == IBV_QPS_RTS));
}

void FakeWire::change_window(Pair& pair, const Write& request) {
  const std::uint32_t number = pair.pair.qp_num;
  const bool valid =
      request.kind == IBV_WR_BIND_MW
          ? memory_.open_window(number, request.window, request.remote_key, request.opened)
          : memory_.close_window(number, request.remote_key);
  if (valid) {
    ++pair.arrived;
    return;
  }
  record_violation(pair, "a window is opened or closed wrongly");
  end(pair, IBV_WC_MW_BIND_ERR, 0);
}

// Returns true if the source is registered and still holds the write's bytes. A device may
// retransmit them until the write completes.
bool FakeWire::is_unchanged(const Write& write) {
  if (write.source == nullptr) return true;
  const auto range = memory_.with_local_key(write.local_key);
  return range &&
         range->holds(reinterpret_cast<std::uintptr_t>(write.source), write.bytes.size()) &&
         std::memcmp(write.source, write.bytes.data(), write.bytes.size()) == 0;
}

void FakeWire::deliver_one(Pair& pair) {
  const Write& write = pair.writes[pair.arrived];
  if (write.kind == IBV_WR_BIND_MW || write.kind == IBV_WR_LOCAL_INV)
    return change_window(pair, write);
  Pair& peer = *pair.peer;
  if (peer.first_expected != pair.first_sent)
    record_violation(pair, "its first packet number is not the one that the peer expects");
  if (!is_unchanged(write)) {
    record_violation(pair, "the source of a write is not registered or has changed");
    return end(pair, IBV_WC_LOC_PROT_ERR, 0);
  }
  if (!write.bytes.empty()) {
    const auto range = memory_.writable_for(peer.pair.qp_num, write.remote_key);
    if (!range || !range->holds(write.address, write.bytes.size())) {
      record_violation(pair, "a write targets memory that the peer has not opened");
      return end(pair, IBV_WC_REM_ACCESS_ERR, 0);
    }
    std::memcpy(reinterpret_cast<void*>(write.address), write.bytes.data(), write.bytes.size());
  }
  if (write.immediate) {
    if (peer.receives.empty()) {
      record_violation(pair, "the peer has posted no receive request (RNR)");
      return end(pair, IBV_WC_RNR_RETRY_EXC_ERR, 0);
    }
    ibv_wc completion{};
    completion.wr_id = peer.receives.front();
    completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    completion.imm_data = *write.immediate;
    completion.byte_len = static_cast<std::uint32_t>(write.bytes.size());
    completion.wc_flags = IBV_WC_WITH_IMM;
    peer.receives.pop_front();
    push_completion(peer, completion, false);
  }
  ++pair.arrived;
}

void FakeWire::complete_one(Pair& pair) {
  const Write write = std::move(pair.writes.front());
  pair.writes.pop_front();
  --pair.arrived;
  if (!is_unchanged(write))
    record_violation(pair, "the source of a write changed before the write completed");
  ++pair.unreported;
  if (!write.signaled) return;
  ibv_wc completion{};
  completion.wr_id = write.id;
  completion.opcode = IBV_WC_RDMA_WRITE;
  push_completion(pair, completion, true);
}

void FakeWire::push_completion(Pair& pair, const ibv_wc& completion, bool send) {
  Queue& queue = queue_of(pair.pair.send_cq);
  Entry entry{completion, send ? pair.unreported : 0, send ? 0U : 1U};
  if (send) pair.unreported = 0;
  entry.completion.qp_num = pair.pair.qp_num;
  queue.entries.push_back(entry);
  if (queue.entries.size() > static_cast<std::size_t>(queue.queue.cqe))
    record_violation(pair, "its completion queue overflows");
  if (!queue.armed) return;
  queue.armed = false;
  const std::uint64_t one = 1;
  if (::write(queue.queue.channel->fd, &one, sizeof(one)) != sizeof(one))
    record_violation(pair, "its completion channel cannot signal");
}

// Completes the first write with `status`, and all other writes and receives as flushed.
void FakeWire::end(Pair& pair, ibv_wc_status status, std::uint32_t vendor_error) {
  pair.pair.state = IBV_QPS_ERR;
  ibv_wc completion{};
  completion.status = status;
  completion.vendor_err = vendor_error;
  for (; !pair.writes.empty(); pair.writes.pop_front()) {
    completion.wr_id = pair.writes.front().id;
    ++pair.unreported;
    push_completion(pair, completion, true);
    completion.status = IBV_WC_WR_FLUSH_ERR;
    completion.vendor_err = 0;
  }
  pair.arrived = 0;
  completion.status = IBV_WC_WR_FLUSH_ERR;
  completion.vendor_err = 0;
  for (; !pair.receives.empty(); pair.receives.pop_front()) {
    completion.wr_id = pair.receives.front();
    push_completion(pair, completion, false);
  }
}

// Returns the pairs for which `can` is true and that are not delayed. If `can` is true for a
// delayed pair, shortens the pair's delay. With random_delays, may begin new delays.
std::vector<FakeWire::Pair*> FakeWire::ready_pairs(bool (*can)(const Pair&),
                                                   std::uint32_t Pair::*late) {
  std::vector<Pair*> result;
  for (const auto& entry : pairs_) {
    Pair& pair = *entry.second;
    if (!can(pair)) continue;
    if (random_delays && pair.*late == 0 && random_() % 256 == 0)
      pair.*late = static_cast<std::uint32_t>(random_() % 2000);
    if (pair.*late > 0) {
      --(pair.*late);
    } else {
      result.push_back(&pair);
    }
  }
  return result;
}

bool FakeWire::advance() {
  const auto deliverable = ready_pairs(can_deliver, &Pair::late_arrivals);
  const auto completable = ready_pairs(can_complete, &Pair::late_completions);
  const std::size_t choices = deliverable.size() + completable.size();
  if (choices == 0) {  // nothing is left to do, or everything is delayed
    return std::ranges::any_of(pairs_, [](const auto& entry) {
      return can_deliver(*entry.second) || can_complete(*entry.second);
    });
  }
  const std::size_t choice = random_() % choices;
  if (choice < deliverable.size()) {
    deliver_one(*deliverable[choice]);
  } else {
    complete_one(*completable[choice - deliverable.size()]);
  }
  return true;
}

bool FakeWire::step() {
  const std::lock_guard lock(mutex_);
  return advance();
}

void FakeWire::run() {
  while (step()) continue;
}

std::vector<std::uint32_t> FakeWire::pairs() {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, pair] : pairs_) numbers.push_back(number);
  return numbers;
}

void FakeWire::deliver(std::uint32_t pair) {
  const std::lock_guard lock(mutex_);
  Pair& which = *pairs_.at(pair);
  while (can_deliver(which)) deliver_one(which);
}

void FakeWire::fail(std::uint32_t pair, ibv_wc_status status, std::uint32_t vendor_error) {
  const std::lock_guard lock(mutex_);
  end(*pairs_.at(pair), status, vendor_error);
}

void FakeWire::distort(std::uint32_t immediate) {
  const std::lock_guard lock(mutex_);
  distorted_ = immediate;
}

std::uint32_t FakeWire::outstanding_writes(std::uint32_t pair) {
  const std::lock_guard lock(mutex_);
  return pairs_.at(pair)->sends_in_use;
}

ibv_qp_state FakeWire::state(std::uint32_t pair) {
  const std::lock_guard lock(mutex_);
  return pairs_.at(pair)->pair.state;
}

std::size_t FakeWire::objects() {
  const std::lock_guard lock(mutex_);
  return channels_.size() + queues_.size() + pairs_.size();
}

void FakeWire::expect_clean() {
  EXPECT_EQ(violations_, std::vector<std::string>{});
  EXPECT_EQ(objects(), 0U);
  EXPECT_EQ(memory_.windows(), 0U);
  EXPECT_EQ(memory_.count(), 0U);
}

}  // namespace hccl::verbs::test
