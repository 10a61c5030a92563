// SPDX-License-Identifier: Apache-2.0
#include "network/network_message.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <span>

namespace hccl::network {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr std::byte kAnswer{0x2A};

}  // namespace

NetworkMessage::NetworkMessage(const PointToPoint& call, bool wants_answer,
                               NetworkMessages& messages, device::Arena& arena)
    : call_(call),
      messages_(messages),
      link_(messages.link_of(call)),
      memory_(arena, call.address),
      header_(CallHeader::of(call, wants_answer)),
      answer_is_due_(sends() && wants_answer) {}

NetworkMessage::~NetworkMessage() {
  if (!complete_ && has_turn() && link_.endpoint) link_.endpoint->cut();
}

transport::WaitSet::Entry NetworkMessage::interest() const {
  if (!has_moved()) return {&endpoint(), {.readable = !sends(), .writable = sends()}};
  // Either only the answer is missing, or the transport may still be reading the bytes in place.
  return {&endpoint(),
          {.readable = sends() && answer_is_due_,
           .writable = !sends() && answer_is_due_,
           .flushed = !answer_is_due_ || !endpoint().flushed()}};
}

bool NetworkMessage::advance(int own_rank) {
  if (complete_ || !has_turn()) return false;
  transport::Endpoint& stream = endpoint();
  bool moved = false;
  if (!has_moved()) moved = sends() ? send(stream) : receive(stream, own_rank);
  const bool can_settle = sends() ? has_moved() : header_moved_ == sizeof(CallHeader);
  if (answer_is_due_ && can_settle && exchange_answer(stream)) {
    answer_is_due_ = false;
    moved = true;
  }
  if (!has_moved() || answer_is_due_) return moved;
  if (!stream.flushed()) return moved;
  complete_ = true;
  messages_.finish(link_, call_);
  return true;
}

transport::Endpoint& NetworkMessage::endpoint() const {
  if (!link_.endpoint) messages_.open(link_, call_);
  return *link_.endpoint;
}

std::size_t NetworkMessage::left(std::size_t most) const {
  return static_cast<std::size_t>(std::min<std::uint64_t>(call_.bytes() - moved_, most));
}

bool NetworkMessage::send(transport::Endpoint& endpoint) {
  const std::span<const std::byte> rest = header_.bytes().subspan(header_moved_);
  std::span<const std::byte> piece;
  if (left(kPiece) != 0) piece = memory_.get().source(moved_, left(kPiece));
  const std::array<std::span<const std::byte>, 2> parts{rest, piece};
  const std::size_t taken = endpoint.try_send_parts(parts);
  const std::size_t of_header = std::min(taken, rest.size());
  header_moved_ += of_header;
  moved_ += taken - of_header;
  return taken > 0;
}

bool NetworkMessage::receive(transport::Endpoint& endpoint, int own_rank) {
  if (header_moved_ == 0) {
    const auto arrived = endpoint.try_receive(sizeof(CallHeader));
    if (arrived.size() < sizeof(CallHeader)) return false;
    const CallHeader theirs = CallHeader::from(arrived);
    check(theirs, own_rank);
    answer_is_due_ = theirs.confirm != 0;
    endpoint.release(sizeof(CallHeader));
    header_moved_ = sizeof(CallHeader);
  }
  const std::size_t most = left(transport::kLongestDestination);
  if (most == 0) return true;
  const std::size_t count = endpoint.try_receive_into(memory_.get().destination(moved_, most));
  moved_ += count;
  return count > 0;
}

bool NetworkMessage::exchange_answer(transport::Endpoint& endpoint) const {
  if (!sends()) return endpoint.try_send({&kAnswer, 1}) == 1;
  if (endpoint.try_receive(1).empty()) return false;
  endpoint.release(1);
  return true;
}

void NetworkMessage::check(const CallHeader& theirs, int own_rank) const {
  if (header_.is_same_call(theirs)) return;
  PointToPoint sent = call_;
  sent.direction = Direction::send;
  sent.peer = own_rank;
  sent.count = theirs.count;
  sent.type = theirs.type;
  throw Error(hcclInvalidUsage, text("message ", call_.number, ": rank ", call_.peer, ' ',
                                     describe(sent), " but rank ", own_rank, ' ', describe(call_),
                                     "; both must pass the same count and type"));
}

}  // namespace hccl::network
