// SPDX-License-Identifier: Apache-2.0
// The steps of single messages: the sender offers a message, and the receiver takes it from the
// mailbox, from the sender's memory, or piece by piece from the sender's staging buffer.
#pragma once

#include "call/point_to_point.h"
#include "device/arena.h"
#include "node/mailboxes.h"
#include "node/message_copier.h"
#include "node/node_segment.h"
#include "node/pending_messages.h"

#include <cstdint>

namespace hccl::node {

// A long message from host memory goes through the two halves of its sender's staging buffer, which
// peers can map. The sender fills the buffer only when the receiver is ready, so that one buffer
// serves all sends of a group in any order.
class MessageSteps {
 public:
  // `staging`: a staging buffer of kExchangeStagingBytes for calls on host memory, or 0 if there
  // are no such calls.
  MessageSteps(NodeSegment& node, const Mailboxes& mailboxes, device::DeviceAddress staging,
               std::uint64_t cache_bytes)
      : node_(node),
        mailboxes_(mailboxes),
        staging_(staging),
        copier_(node, staging, cache_bytes) {}

  [[nodiscard]] MessageItem make_item(const PointToPoint& call) const;
  // Returns whether the item's next step can be taken without waiting for its peer.
  [[nodiscard]] bool ready(const MessageItem& item) const;
  // Takes the next step of an item that is ready. Throws Error.
  void advance(MessageItem& item);
  // Offers the message of a send whose state is `begun`.
  void offer(MessageItem& item);
  // Copies the message of a receive whose state is `begun`. The message must not be streamed.
  void take(MessageItem& item);
  // Rings the peers that must see the steps taken since the last call of ring_peers().
  void ring_peers();

  // Returns whether a message comes through the sender's staging buffer.
  [[nodiscard]] static bool is_streamed(const MessageItem& item);
  // Returns whether an offered message has the count and type that its receive expects.
  [[nodiscard]] static bool matches(const MessageItem& item);
  // Returns whether the pages of an item in device memory are already mapped.
  [[nodiscard]] bool is_in_page_tables(MessageItem& item) const;

 private:
  [[noreturn]] void throw_mismatch(const MessageItem& item);
  void prepare_destination(MessageItem& item);
  void finish(MessageItem& item);
  void load_from_host(const PointToPoint& call, Message& message);
  [[nodiscard]] bool can_fill(const MessageItem& item) const;
  void fill(MessageItem& item);
  void begin_draining(MessageItem& item);
  void drain(MessageItem& item);
  void ring_later(int peer) { peers_to_ring_ |= std::uint64_t{1} << peer; }

  NodeSegment& node_;
  const Mailboxes& mailboxes_;
  const device::DeviceAddress staging_;
  MessageCopier copier_;
  const MessageItem* filling_ = nullptr;  // the send that uses the staging buffer
  std::uint64_t peers_to_ring_ = 0;       // one bit per rank
};
static_assert(kMaxRanks <= 64);

}  // namespace hccl::node
