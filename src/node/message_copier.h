// SPDX-License-Identifier: Apache-2.0
// Copies received messages to their destination in device or host memory.
#pragma once

#include "device/arena.h"
#include "node/node_segment.h"
#include "node/pending_messages.h"

#include <cstddef>
#include <cstdint>

namespace hccl::node {

// A range of a message's bytes in the sender's memory file.
struct MessagePiece {
  std::uint64_t position;  // of the piece's first byte in the message
  std::uint64_t bytes;
  std::uint64_t file_offset;
  device::Content content;
};

class MessageCopier {
 public:
  // Longer copies check for a fault at intervals. Peers are rung before a long copy starts, so that
  // none of them waits for it to end.
  static constexpr std::uint64_t kLongCopy = 16 << 10;

  // A copy bypasses the caches if messages of the same length to all ranks would together touch
  // more than about 1.5 times `cache_bytes`.
  MessageCopier(NodeSegment& node, std::uint64_t cache_bytes)
      : node_(node), cache_bytes_(cache_bytes) {}

  // Returns the placement of an item in device memory. Caches the placement in the item until
  // allocations change, because other pages may then back the same address.
  const device::Placement& locate(MessageItem& item) const;

  // Makes an item's receive buffer accessible to the copies below. Throws Error.
  void prepare_destination(MessageItem& item) const;
  // copy_short() copies a whole message from its mailbox. copy_piece() copies a piece of a message
  // from the sender's memory file. copy_from_process() copies a whole message from the sender's
  // host memory, and returns false if this process cannot read that memory. Call
  // prepare_destination() first. Throw Error, which is the recorded fault if the communicator has
  // failed.
  void copy_short(const MessageItem& item) const;
  void copy_piece(const MessageItem& item, const MessagePiece& piece) const;
  [[nodiscard]] bool copy_from_process(const MessageItem& item) const;

 private:
  // Returns a pointer into the receive buffer, at byte `position` of the message, valid for
  // ArenaView::kLongestSpan bytes.
  [[nodiscard]] std::byte* destination(const MessageItem& item, std::uint64_t position) const;

  NodeSegment& node_;
  const std::uint64_t cache_bytes_;
};

}  // namespace hccl::node
