// SPDX-License-Identifier: Apache-2.0
// Copies received messages to their place, in the memory of the device or of the program.
#pragma once

#include "device/arena.h"
#include "node/node_segment.h"
#include "node/pending_messages.h"

#include <cstdint>

namespace hccl::node {

// Some bytes of a message, in the sender's memory file.
struct MessagePiece {
  std::uint64_t position;  // of its first byte in the message
  std::uint64_t bytes;
  std::uint64_t file_offset;
  device::Content content;
};

class MessageCopier {
 public:
  // Copies of more bytes check for a fault now and then, and let nobody wait for news.
  static constexpr std::uint64_t kLongCopy = 16 << 10;

  // `staging`: the staging buffer for messages to host memory, or 0 if there are none. Copies of
  // more than about `cache_bytes` store past the cache.
  MessageCopier(NodeSegment& node, device::DeviceAddress staging, std::uint64_t cache_bytes)
      : node_(node), staging_(staging), cache_bytes_(cache_bytes) {}

  // Returns where an item on device memory lies, and keeps that until allocations change: then the
  // pages may be others.
  const device::Placement& locate(MessageItem& item) const;

  // Copy a whole message of the mailbox, and a piece from the sender's memory. locate() items on
  // device memory first, and map their pages. Throw Error, the communicator's fault among them.
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
