// SPDX-License-Identifier: Apache-2.0
// The steps of a message: the sender offers a message, and the receiver takes it from the mailbox,
// or from the sender's device memory, host memory (CrossMemory) or staging buffer.
#pragma once

#include "call/point_to_point.h"
#include "device/arena.h"
#include "node/mailboxes.h"
#include "node/message_copier.h"
#include "node/node_segment.h"
#include "node/pending_messages.h"
#include "node/staging_ring.h"

#include <cstdint>

namespace hccl::node {

// A message from host memory that does not fit into the mailbox goes through its sender's staging
// buffer, which peers can map, unless the receiver copies it directly from the sender's process.
// When the sender offers the message, stage() may copy it to the buffer's message ring. If the
// message is not in the ring and the receiver cannot copy it directly, the sender copies it piece
// by piece to another part of the buffer. The sender does this only once the receiver is ready, so
// that all sends of a group can share that part, in any order.
class MessageSteps {
 public:
  // `staging`: a staging buffer of kStagingBytes for calls on host memory, or 0 if there are no
  // such calls. `ring`: the reservations in the buffer's message ring.
  MessageSteps(NodeSegment& node, const Mailboxes& mailboxes, device::DeviceAddress staging,
               StagingRing& ring, std::uint64_t cache_bytes)
      : node_(node),
        mailboxes_(mailboxes),
        staging_(staging),
        ring_(ring),
        copier_(node, cache_bytes) {}

  [[nodiscard]] MessageItem make_item(const PointToPoint& call) const;
  // Returns whether the item's next step can be taken without waiting for its peer.
  [[nodiscard]] bool ready(const MessageItem& item) const;
  // Takes the next step of an item that is ready. Throws Error.
  void advance(MessageItem& item);
  // Offers the message of a send that is ready and whose state is `begun`. Throws Error.
  void offer(MessageItem& item);
  // Copies the message of a receive that is ready and whose state is `begun`. Returns false if the
  // message has to come in pieces, which takes several steps. Throws Error.
  [[nodiscard]] bool take(MessageItem& item);
  // Rings the doorbells of the peers that are affected by the steps since the last call.
  void ring_peers();

  // Returns whether an offered message has the count and type that its receive expects.
  [[nodiscard]] static bool matches(const MessageItem& item);
  // Returns whether the item's device memory is mapped, or its host memory is accessible and known
  // to be no host view. If so, offer() and take() can fail only if there is too little memory or
  // the communicator has failed.
  [[nodiscard]] bool can_begin_early(MessageItem& item) const;

 private:
  [[noreturn]] void throw_mismatch(const MessageItem& item);
  void prepare(MessageItem& item);
  [[nodiscard]] bool copy_whole(MessageItem& item);
  void finish(MessageItem& item);
  void stage(MessageItem& item);
  void prefetch_later_message(const MessageItem& item, std::uint64_t offset) const;
  void complete_send(MessageItem& item);
  [[nodiscard]] bool can_fill(const MessageItem& item) const;
  void fill(MessageItem& item);
  void begin_draining(MessageItem& item);
  void drain(MessageItem& item);
  void ring_later(int peer) { peers_to_ring_ |= std::uint64_t{1} << peer; }

  NodeSegment& node_;
  const Mailboxes& mailboxes_;
  const device::DeviceAddress staging_;
  StagingRing& ring_;
  const MessageCopier copier_;
  const MessageItem* filling_ = nullptr;  // the send that is being copied in pieces
  std::uint64_t peers_to_ring_ = 0;       // one bit per rank
};
static_assert(kMaxRanks <= 64);

}  // namespace hccl::node
