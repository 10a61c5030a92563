// SPDX-License-Identifier: Apache-2.0
// Copies to host memory go through the kernel, so that an invalid address passed by the program
// causes an error, not a signal.
#include "node/message_copier.h"

#include "device/copy.h"
#include "node/rank_memory.h"
#include "node/slicing.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace hccl::node {
namespace {

void* host_destination(const PointToPoint& call, std::uint64_t position) {
  return reinterpret_cast<void*>(call.address + position);
}

}  // namespace

const device::Placement& MessageCopier::locate(MessageItem& item) const {
  if (!node_.arena().is_current(item.at)) item.at = node_.arena().locate(item.call->address);
  return item.at;
}

void MessageCopier::copy_short(const MessageItem& item) {
  if (!device::is_device_address(item.call->address)) return copy_short_to_host(item);
  std::byte* const destination = node_.arena().view()->at(item.at.file_offset);
  std::memcpy(destination, item.message->payload, item.bytes);
}

void MessageCopier::copy_piece(const MessageItem& item, const MessagePiece& piece) {
  if (!device::is_device_address(item.call->address)) return copy_piece_to_host(item, piece);
  device::ArenaView& mine = *node_.arena().view();
  device::ArenaView& theirs = node_.memory(item.call->peer);
  theirs.follow(piece.file_offset, piece.bytes, item.message->serial);
  const bool mapped = theirs.populated(piece.file_offset, piece.bytes);
  const std::uint64_t to = item.at.file_offset + piece.position;
  // The common case: no pages to map, no holes, and too few bytes to check for a fault.
  if (mapped && piece.bytes <= kLongCopy && piece.content == device::Content::data) {
    std::memcpy(mine.at(to), theirs.at(piece.file_offset), piece.bytes);
    return;
  }
  const bool streaming =
      2 * piece.bytes * static_cast<std::uint64_t>(node_.size()) > cache_bytes_ / 2 * 3;
  const auto policy = streaming ? reduce::StorePolicy::streaming : reduce::StorePolicy::cached;
  for (std::uint64_t done = 0; done < piece.bytes; done += kMaxSourceBytes) {
    node_.throw_if_failed();
    const std::uint64_t bytes = std::min(kMaxSourceBytes, piece.bytes - done);
    std::byte* const destination = mine.at(to + done);
    const std::byte* const source =
        as_source(theirs, piece.file_offset + done, bytes, piece.content, mapped);
    reduce::copy_tile(source, {&destination, 1}, bytes, policy);
  }
}

void MessageCopier::copy_piece_to_host(const MessageItem& item, const MessagePiece& piece) {
  for (std::uint64_t done = 0; done < piece.bytes; done += kStagingHalfBytes) {
    node_.throw_if_failed();
    device::copy_to_host(node_.memory(item.call->peer),
                         host_destination(*item.call, piece.position + done),
                         piece.file_offset + done, std::min(kStagingHalfBytes, piece.bytes - done));
  }
}

void MessageCopier::copy_short_to_host(const MessageItem& item) {
  device::ArenaView& mine = *node_.arena().view();
  const std::uint64_t offset = node_.arena().locate(staging_ + kShortMessagesOffset).file_offset;
  mine.populate(offset, item.bytes, true);
  std::memcpy(mine.at(offset), item.message->payload, item.bytes);
  device::copy_to_host(mine, host_destination(*item.call, 0), offset, item.bytes);
}

}  // namespace hccl::node
