// SPDX-License-Identifier: Apache-2.0
// Copies received messages to their destination in device or host memory.
#pragma once

#include "device/arena.h"
#include "node/node_segment.h"
#include "node/pending_messages.h"

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
  // Longer copies check for a fault at intervals. Peers are rung before such a copy starts, so that
  // no peer waits for the copy to end.
  static constexpr std::uint64_t kLongCopy = 16 << 10;

  // `staging`: the staging buffer for messages to host memory, or 0 if there are no such messages.
  // A copy bypasses the caches if copies of the same length on all ranks would together touch more
  // than about 1.5 times `cache_bytes`.
  MessageCopier(NodeSegment& node, device::DeviceAddress staging, std::uint64_t cache_bytes)
      : node_(node), staging_(staging), cache_bytes_(cache_bytes) {}

  // Returns the placement of an item in device memory. Caches the placement in the item until
  // allocations change, because the same address may then be backed by other pages.
  const device::Placement& locate(MessageItem& item) const;

  // copy_short() copies a whole message from its mailbox; copy_piece() copies a piece of a message
  // from the sender's memory. For an item in device memory, call locate() and map its pages first.
  // Throw Error, including the communicator's fault.
  void copy_short(const MessageItem& item);
  void copy_piece(const MessageItem& item, const MessagePiece& piece);

 private:
  void copy_short_to_host(const MessageItem& item);
  void copy_piece_to_host(const MessageItem& item, const MessagePiece& piece);

  NodeSegment& node_;
  const device::DeviceAddress staging_;
  const std::uint64_t cache_bytes_;
};

}  // namespace hccl::node
