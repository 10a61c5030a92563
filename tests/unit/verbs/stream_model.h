// SPDX-License-Identifier: Apache-2.0
// A model of both ends of a stream in which bytes are known by their positions. What the two say
// stays under way for as long as chance has it.
#pragma once

#include "verbs/invitation.h"
#include "verbs/send_side.h"
#include "verbs/windows.h"

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <variant>

#include <gtest/gtest.h>

namespace hccl::verbs::test {

class StreamModel {
 public:
  explicit StreamModel(std::uint64_t seed) : random_(seed) {}

  // From now on some things happen often and others hardly ever.
  void change_mood() {
    std::array<double, 4> weights{};
    for (double& weight : weights) weight = std::array{0.02, 1.0, 4.0}.at(random_() % 3);
    mood_ = std::discrete_distribution<int>(weights.begin(), weights.end());
    longest_ = std::array<std::size_t, 3>{100, 5000, kSlice}.at(random_() % 3);
    polite_ = random_() % 3 > 0;
  }
  void step() {
    switch (mood_(random_)) {
      case 0:
        return send(1 + random_() % longest_);
      case 1:
        return deliver_to_receiver();
      case 2:
        return deliver_to_sender();
      default:
        return take();
    }
  }
  // Takes everything that has been sent.
  void settle() {
    while (!to_receiver_.empty() || taken_ < written_) {
      deliver_to_receiver();
      take();
      while (!to_sender_.empty()) deliver_to_sender();
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(window_.held(), 0U);
    EXPECT_EQ(host_.straight(), 0U);
  }

  struct Seen {
    int straight = 0;   // invitations all of whose bytes came straight
    int too_late = 0;   // through the ring
    int partly = 0;     // first through the ring, then straight
    int ring_next = 0;  // and bytes behind them through the ring again, before they were taken
  };
  [[nodiscard]] const Seen& seen() const { return seen_; }

 private:
  struct Data {
    Message::Kind kind = Message::Kind::data;
    std::uint64_t position = 0;
    std::size_t bytes = 0;
    std::uint64_t address = 0;
    std::uint32_t invitations = 0;
  };
  struct Piece {
    std::uint64_t position = 0;
    std::size_t bytes = 0;
  };

  void send(std::size_t most) {
    if (!sender_.may_send()) return;
    Data data{Message::Kind::data, written_, most, 0, seen_by_sender_};
    if (const std::size_t welcome = guest_.welcome(written_); welcome > 0) {
      data.kind = Message::Kind::direct;
      data.bytes = std::min(most, welcome);
      data.address = guest_.address(written_);
      EXPECT_EQ(guest_.key(), seen_by_sender_) << "the key is that of the last invitation";
      sender_.send_straight();
    } else {
      data.bytes = std::min(most, sender_.room());
      if (data.bytes == 0) return;
      sender_.send_through_ring(data.bytes);
    }
    written_ += data.bytes;
    to_receiver_.push_back(data);
  }

  void deliver_to_receiver() {
    if (to_receiver_.empty()) return;
    const Data data = to_receiver_.front();
    to_receiver_.pop_front();
    const bool straight = data.kind == Message::Kind::direct;
    EXPECT_TRUE(window_.arrive(straight ? 0 : data.bytes));
    EXPECT_LE(invitations_ - data.invitations, kMostInvitations);
    seen_by_sender_as_told_ = data.invitations;
    if (straight) {
      EXPECT_EQ(data.address - address_, data.position - begin_) << "each byte has its own place";
      EXPECT_GE(data.position, invited_from_);
      EXPECT_LE(data.position + data.bytes, invited_from_ + invited_);
      EXPECT_TRUE(host_.arrive(data.bytes, window_.arrived(), window_.released()));
      straight_.push_back({data.position, data.bytes});
    } else {
      if (!straight_.empty()) ++seen_.ring_next;
      ring_.push_back({data.position, data.bytes});
    }
    tell();
  }

  void deliver_to_sender() {
    if (to_sender_.empty()) return;
    if (const auto* credit = std::get_if<Message>(&to_sender_.front())) {
      EXPECT_TRUE(sender_.credit(*credit));
    } else {
      guest_.invite(std::get<Invitation>(to_sender_.front()));
      ++seen_by_sender_;
    }
    to_sender_.pop_front();
  }

  // What ReceiveSide::take() does, with a destination of its own.
  void take() {
    if (destination_ == 0) {
      destination_ = 1 + random_() % (4 * longest_);
      begin_ = taken_;
      address_ = random_() << 12;
    }
    std::size_t most = polite_ ? destination_ : 1 + random_() % destination_;
    while (most > 0) {
      const std::size_t count = take_some(most);
      if (count == 0) break;
      most -= count;
      destination_ -= count;
    }
    if (!host_.open() && destination_ > 0 && most > 0 && polite_ &&
        invitations_ - seen_by_sender_as_told_ < kMostInvitations) {
      invite(1 + random_() % destination_);
    }
  }

  std::size_t take_some(std::size_t most) {
    const bool open = host_.open();
    const std::size_t held = window_.held();
    std::size_t count = std::min(open ? host_.ring_first(window_.released(), held) : held, most);
    const bool straight = count == 0 && open;
    if (straight) count = std::min(host_.straight(), most);
    if (count == 0) return 0;
    take_positions(straight ? straight_ : ring_, count);
    if (!straight) {
      window_.lend(count);
      EXPECT_EQ(window_.release(count), count);
      tell();
    }
    if (open) {
      host_.take(count, straight);
      (straight ? came_straight_ : came_through_ring_) += count;
      if (!host_.open()) close();
    }
    return count;
  }
  void take_positions(std::deque<Piece>& from, std::size_t count) {
    while (count > 0) {
      ASSERT_FALSE(from.empty());
      Piece& piece = from.front();
      ASSERT_EQ(piece.position, taken_) << "the stream has an order";
      const std::size_t part = std::min(count, piece.bytes);
      piece = {piece.position + part, piece.bytes - part};
      taken_ += part;
      count -= part;
      if (piece.bytes == 0) from.pop_front();
    }
  }

  void invite(std::size_t bytes) {
    invited_from_ = taken_;
    invited_ = bytes;
    ++invitations_;
    host_.invite(bytes);
    to_sender_.emplace_back(Invitation{taken_, address_ + (taken_ - begin_),
                                       static_cast<std::uint32_t>(bytes), invitations_});
  }
  void close() {
    EXPECT_EQ(came_straight_ + came_through_ring_, invited_);
    if (came_through_ring_ == 0) ++seen_.straight;
    if (came_straight_ == 0) ++seen_.too_late;
    if (came_straight_ > 0 && came_through_ring_ > 0) ++seen_.partly;
    came_straight_ = came_through_ring_ = 0;
  }
  void tell() {
    if (window_.credit_due()) to_sender_.emplace_back(window_.take_credit());
  }

  std::mt19937_64 random_;
  std::discrete_distribution<int> mood_;
  std::size_t longest_ = kSlice;  // of what is sent or received at a time
  bool polite_ = true;            // the receiver invites
  Seen seen_;

  std::deque<Data> to_receiver_;
  std::deque<std::variant<Message, Invitation>> to_sender_;

  SendWindow sender_;
  Guest guest_;
  std::uint64_t written_ = 0;
  std::uint32_t seen_by_sender_ = 0;  // invitations

  ReceiveWindow window_;
  Host host_;
  std::deque<Piece> ring_;
  std::deque<Piece> straight_;
  std::uint64_t taken_ = 0;
  std::size_t destination_ = 0;  // what is left of it
  std::uint64_t begin_ = 0;      // its first byte's position, and where that goes
  std::uint64_t address_ = 0;
  std::uint32_t invitations_ = 0;
  std::uint32_t seen_by_sender_as_told_ = 0;
  std::uint64_t invited_from_ = 0;
  std::size_t invited_ = 0;
  std::size_t came_straight_ = 0;
  std::size_t came_through_ring_ = 0;
};

}  // namespace hccl::verbs::test
