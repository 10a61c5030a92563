// SPDX-License-Identifier: Apache-2.0
// The fake library's functions that create, modify, use and destroy queue pairs.
#include "fake_wire.h"

#include <cerrno>

#include <sys/eventfd.h>
#include <unistd.h>

namespace hccl::verbs::test {
namespace {

FakeWire* wire_in_use = nullptr;

}  // namespace

struct FakeWireFunctions {
  static ibv_comp_channel* create_comp_channel(ibv_context* context) {
    const std::lock_guard lock(wire_in_use->mutex_);
    errno = EMFILE;
    if (wire_in_use->faults.no_channel) return nullptr;
    auto owner = std::make_unique<FakeWire::Channel>();
    owner->channel.context = context;
    owner->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    ibv_comp_channel* const channel = &owner->channel;
    wire_in_use->channels_[channel] = std::move(owner);
    return channel;
  }

  static int destroy_comp_channel(ibv_comp_channel* channel) {
    const std::lock_guard lock(wire_in_use->mutex_);
    if (wire_in_use->channels_.at(channel)->queue != nullptr) return EBUSY;
    close(channel->fd);
    wire_in_use->channels_.erase(channel);
    return 0;
  }

  static ibv_cq* create_cq(ibv_context* context, int depth, void* /*its*/,
                           ibv_comp_channel* channel, int /*vector*/) {
    const std::lock_guard lock(wire_in_use->mutex_);
    errno = ENOMEM;
    if (wire_in_use->faults.no_completion_queue) return nullptr;
    auto queue = std::make_unique<FakeWire::Queue>();
    queue->queue.context = context;
    queue->queue.channel = channel;
    queue->queue.cqe = depth;
    ibv_cq* const made = &queue->queue;
    wire_in_use->channels_.at(channel)->queue = made;
    wire_in_use->queues_[made] = std::move(queue);
    return made;
  }

  // Records a violation where the real function would wait forever for an acknowledgement.
  static int destroy_cq(ibv_cq* queue) {
    const std::lock_guard lock(wire_in_use->mutex_);
    if (wire_in_use->queue_of(queue).unacknowledged != 0)
      wire_in_use->violations_.emplace_back(
          "a completion queue is destroyed before its events are acknowledged");
    wire_in_use->channels_.at(queue->channel)->queue = nullptr;
    wire_in_use->queues_.erase(queue);
    return 0;
  }

  static int get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** its) {
    std::uint64_t one = 0;
    if (read(channel->fd, &one, sizeof(one)) != sizeof(one)) return -1;
    const std::lock_guard lock(wire_in_use->mutex_);
    *queue = wire_in_use->channels_.at(channel)->queue;
    *its = nullptr;
    ++wire_in_use->queue_of(*queue).unacknowledged;
    return 0;
  }

  static void ack_cq_events(ibv_cq* queue, unsigned count) {
    const std::lock_guard lock(wire_in_use->mutex_);
    wire_in_use->queue_of(queue).unacknowledged -= static_cast<int>(count);
  }

  static ibv_qp* create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
    const std::lock_guard lock(wire_in_use->mutex_);
    errno = EINVAL;
    if (wire_in_use->faults.no_queue_pair ||
        attributes->cap.max_inline_data > wire_in_use->faults.most_inline)
      return nullptr;
    auto pair = std::make_unique<FakeWire::Pair>();
    pair->pair.context = domain->context;
    pair->pair.pd = domain;
    pair->pair.send_cq = attributes->send_cq;
    pair->pair.recv_cq = attributes->recv_cq;
    pair->pair.qp_num = ++wire_in_use->last_number_;
    pair->pair.state = IBV_QPS_RESET;
    pair->most = attributes->cap;
    ibv_qp* const made = &pair->pair;
    wire_in_use->pairs_[made->qp_num] = std::move(pair);
    return made;
  }

  static int modify_qp(ibv_qp* pair, ibv_qp_attr* attributes, int mask) {
    const std::lock_guard lock(wire_in_use->mutex_);
    return wire_in_use->change(wire_in_use->pair_of(pair), *attributes, mask);
  }

  static int destroy_qp(ibv_qp* pair) {
    const std::lock_guard lock(wire_in_use->mutex_);
    wire_in_use->forget(wire_in_use->pair_of(pair));
    return 0;
  }

  static int post_send(ibv_qp* pair, ibv_send_wr* request, ibv_send_wr** refused) {
    const std::lock_guard lock(wire_in_use->mutex_);
    const int error = wire_in_use->post(wire_in_use->pair_of(pair), *request);
    if (error != 0) *refused = request;
    return error;
  }

  static int post_recv(ibv_qp* which, ibv_recv_wr* request, ibv_recv_wr** refused) {
    const std::lock_guard lock(wire_in_use->mutex_);
    FakeWire::Pair& pair = wire_in_use->pair_of(which);
    for (; request != nullptr; request = request->next) {
      *refused = request;
      if (wire_in_use->faults.post_receive != 0) return wire_in_use->faults.post_receive;
      if (pair.receives_in_use >= pair.most.max_recv_wr) {
        wire_in_use->record_violation(pair, "more receives were posted than max_recv_wr");
        return ENOMEM;
      }
      pair.receives.push_back(request->wr_id);
      ++pair.receives_in_use;
    }
    if (pair.pair.state == IBV_QPS_ERR) wire_in_use->end(pair, IBV_WC_WR_FLUSH_ERR, 0);
    return 0;
  }

  static int poll_cq(ibv_cq* which, int most, ibv_wc* found) {
    const std::lock_guard lock(wire_in_use->mutex_);
    if (wire_in_use->faults.poll) return -1;
    FakeWire::Queue& queue = wire_in_use->queue_of(which);
    int count = 0;
    for (; count < most && !queue.entries.empty(); ++count, queue.entries.pop_front()) {
      const FakeWire::Entry& entry = queue.entries.front();
      FakeWire::Pair& pair = *wire_in_use->pairs_.at(entry.completion.qp_num);
      pair.sends_in_use -= entry.sends;
      pair.receives_in_use -= entry.receives;
      found[count] = entry.completion;
    }
    return count;
  }

  static int req_notify_cq(ibv_cq* queue, int /*solicited_only*/) {
    const std::lock_guard lock(wire_in_use->mutex_);
    if (wire_in_use->faults.notify) return EIO;
    wire_in_use->queue_of(queue).armed = true;
    return 0;
  }
};

FakeWire::FakeWire(std::uint64_t seed) : random_(seed) {
  wire_in_use = this;
  VerbsLibrary& library = memory_.verbs().library;
  library.create_comp_channel = FakeWireFunctions::create_comp_channel;
  library.destroy_comp_channel = FakeWireFunctions::destroy_comp_channel;
  library.create_cq = FakeWireFunctions::create_cq;
  library.destroy_cq = FakeWireFunctions::destroy_cq;
  library.get_cq_event = FakeWireFunctions::get_cq_event;
  library.ack_cq_events = FakeWireFunctions::ack_cq_events;
  library.create_qp = FakeWireFunctions::create_qp;
  library.modify_qp = FakeWireFunctions::modify_qp;
  library.destroy_qp = FakeWireFunctions::destroy_qp;
  ibv_context_ops& operations = memory_.verbs().operations;
  operations.post_send = FakeWireFunctions::post_send;
  operations.post_recv = FakeWireFunctions::post_recv;
  operations.poll_cq = FakeWireFunctions::poll_cq;
  operations.req_notify_cq = FakeWireFunctions::req_notify_cq;
}

FakeWire::~FakeWire() { wire_in_use = nullptr; }

int FakeWire::change(Pair& pair, const ibv_qp_attr& attributes, int mask) {
  const ibv_qp_state next = attributes.qp_state;
  if (faults.no_change_to == next) return ENETUNREACH;
  if (next == IBV_QPS_ERR) {
    end(pair, IBV_WC_WR_FLUSH_ERR, 0);
    return 0;
  }
  if ((mask & IBV_QP_STATE) == 0 || next != pair.pair.state + 1) {
    record_violation(pair, "its state changes out of order");
    return EINVAL;
  }
  if (next == IBV_QPS_RTR) {
    const auto found = pairs_.find(attributes.dest_qp_num);
    pair.peer = found == pairs_.end() ? nullptr : found->second.get();
    pair.first_expected = attributes.rq_psn;
  }
  if (next == IBV_QPS_RTS) pair.first_sent = attributes.sq_psn;
  pair.pair.state = next;
  return 0;
}

// Removes the pair and its completions.
void FakeWire::forget(const Pair& pair) {
  const std::uint32_t number = pair.pair.qp_num;
  if (memory_.has_open_window(number)) record_violation(pair, "it is destroyed with open windows");
  std::erase_if(queue_of(pair.pair.send_cq).entries,
                [&](const Entry& entry) { return entry.completion.qp_num == number; });
  for (const auto& entry : pairs_) {
    if (entry.second->peer == &pair) entry.second->peer = nullptr;
  }
  pairs_.erase(number);
}

}  // namespace hccl::verbs::test
