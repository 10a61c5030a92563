// SPDX-License-Identifier: Apache-2.0
#include "node/message_copier.h"

#include "device/host_memory.h"
#include "node/rank_memory.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace hccl::node {

const device::Placement& MessageCopier::locate(MessageItem& item) const {
  if (!node_.arena().is_current(item.at)) item.at = node_.arena().locate(item.call->address);
  return item.at;
}

void MessageCopier::prepare_destination(MessageItem& item) const {
  if (item.bytes == 0) return;
  if (item.is_on_host()) {
    device::require_host_access(item.call->address, item.bytes, device::HostAccess::write,
                                "receive buffer");
    return;
  }
  const std::uint64_t to = locate(item).file_offset;
  device::ArenaView& mine = *node_.arena().view();
  if (!mine.populated(to, item.bytes)) mine.populate(to, item.bytes, true);
}

std::byte* MessageCopier::destination(const MessageItem& item, std::uint64_t position) const {
  return item.is_on_host() ? item.host_memory() + position
                           : node_.arena().view()->at(item.at.file_offset + position);
}

void MessageCopier::copy_short(const MessageItem& item) const {
  std::memcpy(destination(item, 0), item.message->payload, item.bytes);
}

void MessageCopier::copy_piece(const MessageItem& item, const MessagePiece& piece) const {
  device::ArenaView& theirs = node_.memory(item.call->peer);
  const bool mapped = theirs.populated(piece.file_offset, piece.bytes);
  // The common case: no pages to map, no holes, and too few bytes to check for a fault.
  if (mapped && piece.bytes <= kLongCopy && piece.content == device::Content::data) {
    std::memcpy(destination(item, piece.position), theirs.at(piece.file_offset), piece.bytes);
    return;
  }
  const bool streaming =
      2 * item.bytes * static_cast<std::uint64_t>(node_.size()) > cache_bytes_ / 2 * 3;
  const auto policy = streaming ? reduce::StorePolicy::streaming : reduce::StorePolicy::cached;
  for (std::uint64_t done = 0; done < piece.bytes; done += kMaxSourceBytes) {
    node_.throw_if_failed();
    const std::uint64_t bytes = std::min(kMaxSourceBytes, piece.bytes - done);
    std::byte* const to = destination(item, piece.position + done);
    const std::byte* const from =
        as_source(theirs, piece.file_offset + done, bytes, piece.content, mapped);
    reduce::copy_tile(from, {&to, 1}, bytes, policy);
  }
}

bool MessageCopier::copy_from_process(const MessageItem& item) const {
  CrossMemory& memory = node_.cross_memory();
  if (!memory.can_read(item.call->peer)) return false;
  constexpr std::uint64_t kPiece = device::ArenaView::kLongestSpan;
  const std::uint64_t from = item.message->staged().address;
  for (std::uint64_t done = 0; done < item.bytes; done += kPiece) {
    const std::uint64_t bytes = std::min(kPiece, item.bytes - done);
    if (!memory.read(item.call->peer, destination(item, done), from + done, bytes)) return false;
  }
  return true;
}

}  // namespace hccl::node
