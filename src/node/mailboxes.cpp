// SPDX-License-Identifier: Apache-2.0
// Each rank publishes its queued calls in the mailboxes that it shares with its peers.
#include "node/mailboxes.h"

#include "reduce/reduce.h"

#include <algorithm>
#include <atomic>

namespace hccl::node {

Mailboxes::Mailboxes(NodeSegment& node)
    : node_(node),
      boxes_(&node.control().mailbox(0, 0)),
      next_send_(static_cast<std::size_t>(node.size())),
      next_receive_(static_cast<std::size_t>(node.size())) {}

void Mailboxes::number(PointToPoint& call, std::uint32_t lane) {
  const bool sends = call.direction == Direction::send;
  call.number = (sends ? next_send_ : next_receive_)[static_cast<std::size_t>(call.peer)]++;
  QueuedCalls& queued = sends ? of(call).sends : of(call).receives;
  queued.entry(call.number).store(queued_on(call.number, lane), std::memory_order_relaxed);
  queued.count.store(call.number + 1, std::memory_order_release);
}

std::optional<Offer> Mailboxes::find_offer(int first) const {
  for (int step = 0; step < node_.size(); ++step) {
    const int source = (first + step) % node_.size();
    if (source == node_.rank()) continue;
    const std::uint64_t number = next_receive_[static_cast<std::size_t>(source)];
    const Message& message = boxes_[source * node_.size() + node_.rank()].message(number);
    // Sequentially consistent, as in MessageSteps::ready(): a thread repeats this check after it
    // has registered as a sleeper. The sender reuses the entry only after the message has been
    // taken.
    if (message.offered.load(std::memory_order_seq_cst) != number + 1) continue;
    const auto type = static_cast<hcclDataType_t>(message.type);
    return Offer{source, message.count * reduce::element_size(type)};
  }
  return std::nullopt;
}

std::uint64_t pack_call(const PointToPoint& call) {
  constexpr std::uint64_t kMaxCount = 0xFFFFFFFF;
  return std::min(call.count, kMaxCount) << 32 |
         static_cast<std::uint64_t>(static_cast<std::uint16_t>(call.peer)) << 16 |
         std::uint64_t{call.type} << 8 | static_cast<std::uint64_t>(call.direction);
}

PointToPoint unpack_call(std::uint64_t packed) {
  PointToPoint call;
  call.direction = static_cast<Direction>(packed & 0xFF);
  call.type = static_cast<std::uint8_t>(packed >> 8);
  call.peer = static_cast<std::uint16_t>(packed >> 16);
  call.count = packed >> 32;
  return call;
}

}  // namespace hccl::node
