// SPDX-License-Identifier: Apache-2.0
// A model of both ends of a stream. It uses the library's classes for windows and adverts, but
// represents bytes by their positions. Messages stay in flight for random times.
#pragma once

#include "verbs/advert.h"
#include "verbs/flow_control.h"
#include "verbs/sender.h"

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

  // Chooses new random weights, so that some actions become frequent and others rare.
  void change_weights() {
    std::array<double, 4> weights{};
    for (double& weight : weights) weight = std::array{0.02, 1.0, 4.0}.at(random_() % 3);
    weights_ = std::discrete_distribution<int>(weights.begin(), weights.end());
    longest_ = std::array<std::size_t, 3>{100, 5000, kSlice}.at(random_() % 3);
    advertises_ = random_() % 3 > 0;
  }
  void step() {
    switch (weights_(random_)) {
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
  // Delivers all messages and takes all bytes that have been sent.
  void release_completed() {
    while (!to_receiver_.empty() || taken_ < written_) {
      deliver_to_receiver();
      take();
      while (!to_sender_.empty()) deliver_to_sender();
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(window_.held(), 0U);
    EXPECT_EQ(receiver_view_.direct(), 0U);
  }

  struct Seen {
    int direct = 0;     // adverts whose bytes were all written directly
    int too_late = 0;   // adverts whose bytes all came through the ring
    int partly = 0;     // adverts whose first bytes came through the ring, the others directly
    int ring_next = 0;  // ring messages that arrived while direct bytes had not been taken
  };
  [[nodiscard]] const Seen& seen() const { return seen_; }

 private:
  struct Data {
    Immediate::Kind kind = Immediate::Kind::data;
    std::uint64_t position = 0;
    std::size_t bytes = 0;
    std::uint64_t address = 0;
    std::uint32_t adverts = 0;
  };
  struct Piece {
    std::uint64_t position = 0;
    std::size_t bytes = 0;
  };

  void send(std::size_t most) {
    if (!sender_.may_send()) return;
    Data data{Immediate::Kind::data, written_, most, 0, seen_by_sender_};
    if (const std::size_t direct_room = sender_view_.direct_room(written_); direct_room > 0) {
      data.kind = Immediate::Kind::direct;
      data.bytes = std::min(most, direct_room);
      data.address = sender_view_.address(written_);
      EXPECT_EQ(sender_view_.key(), seen_by_sender_) << "the key is that of the last advert";
      sender_.send_direct();
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
    const bool direct = data.kind == Immediate::Kind::direct;
    EXPECT_TRUE(window_.arrive(direct ? 0 : data.bytes));
    EXPECT_LE(adverts_ - data.adverts, kMaxAdverts);
    seen_by_sender_as_reported_ = data.adverts;
    if (direct) {
      EXPECT_EQ(data.address - address_, data.position - begin_)
          << "bytes and addresses must correspond";
      EXPECT_GE(data.position, advertised_from_);
      EXPECT_LE(data.position + data.bytes, advertised_from_ + advertised_);
      EXPECT_TRUE(receiver_view_.arrive(data.bytes, window_.arrived(), window_.released()));
      direct_.push_back({data.position, data.bytes});
    } else {
      if (!direct_.empty()) ++seen_.ring_next;
      ring_.push_back({data.position, data.bytes});
    }
    return_credit();
  }

  void deliver_to_sender() {
    if (to_sender_.empty()) return;
    if (const auto* credit = std::get_if<Immediate>(&to_sender_.front())) {
      EXPECT_TRUE(sender_.credit(*credit));
    } else {
      sender_view_.update(std::get<Advert>(to_sender_.front()));
      ++seen_by_sender_;
    }
    to_sender_.pop_front();
  }

  // Takes bytes into a destination of random size, like Receiver::take().
  void take() {
    if (destination_ == 0) {
      destination_ = 1 + random_() % (4 * longest_);
      begin_ = taken_;
      address_ = random_() << 12;
    }
    std::size_t most = advertises_ ? destination_ : 1 + random_() % destination_;
    while (most > 0) {
      const std::size_t count = take_some(most);
      if (count == 0) break;
      most -= count;
      destination_ -= count;
    }
    if (!receiver_view_.open() && destination_ > 0 && most > 0 && advertises_ &&
        adverts_ - seen_by_sender_as_reported_ < kMaxAdverts) {
      advertise(1 + random_() % destination_);
    }
  }

  std::size_t take_some(std::size_t most) {
    const bool open = receiver_view_.open();
    const std::size_t held = window_.held();
    std::size_t count =
        std::min(open ? receiver_view_.ring_first(window_.released(), held) : held, most);
    const bool direct = count == 0 && open;
    if (direct) count = std::min(receiver_view_.direct(), most);
    if (count == 0) return 0;
    take_positions(direct ? direct_ : ring_, count);
    if (!direct) {
      window_.lend(count);
      EXPECT_EQ(window_.release(count), count);
      return_credit();
    }
    if (open) {
      receiver_view_.take(count, direct);
      (direct ? came_direct_ : came_through_ring_) += count;
      if (!receiver_view_.open()) close();
    }
    return count;
  }
  void take_positions(std::deque<Piece>& from, std::size_t count) {
    while (count > 0) {
      ASSERT_FALSE(from.empty());
      Piece& piece = from.front();
      ASSERT_EQ(piece.position, taken_) << "bytes were taken out of order";
      const std::size_t part = std::min(count, piece.bytes);
      piece = {piece.position + part, piece.bytes - part};
      taken_ += part;
      count -= part;
      if (piece.bytes == 0) from.pop_front();
    }
  }

  void advertise(std::size_t bytes) {
    advertised_from_ = taken_;
    advertised_ = bytes;
    ++adverts_;
    receiver_view_.advertise(bytes);
    to_sender_.emplace_back(
        Advert{taken_, address_ + (taken_ - begin_), static_cast<std::uint32_t>(bytes), adverts_});
  }
  void close() {
    EXPECT_EQ(came_direct_ + came_through_ring_, advertised_);
    if (came_through_ring_ == 0) ++seen_.direct;
    if (came_direct_ == 0) ++seen_.too_late;
    if (came_direct_ > 0 && came_through_ring_ > 0) ++seen_.partly;
    came_direct_ = came_through_ring_ = 0;
  }
  void return_credit() {
    if (window_.credit_due()) to_sender_.emplace_back(window_.take_credit());
  }

  std::mt19937_64 random_;
  std::discrete_distribution<int> weights_;
  std::size_t longest_ = kSlice;  // maximum bytes of a send; a quarter of the largest destination
  bool advertises_ = true;        // the receiver advertises its destinations
  Seen seen_;

  std::deque<Data> to_receiver_;
  std::deque<std::variant<Immediate, Advert>> to_sender_;

  SendWindow sender_;
  SenderView sender_view_;
  std::uint64_t written_ = 0;
  std::uint32_t seen_by_sender_ = 0;  // number of adverts that the sender has seen

  ReceiveWindow window_;
  ReceiverView receiver_view_;
  std::deque<Piece> ring_;
  std::deque<Piece> direct_;
  std::uint64_t taken_ = 0;
  std::size_t destination_ = 0;  // bytes of the destination that are not filled
  std::uint64_t begin_ = 0;      // stream position of the destination's first byte
  std::uint64_t address_ = 0;    // address of that byte
  std::uint32_t adverts_ = 0;
  std::uint32_t seen_by_sender_as_reported_ = 0;
  std::uint64_t advertised_from_ = 0;
  std::size_t advertised_ = 0;
  std::size_t came_direct_ = 0;
  std::size_t came_through_ring_ = 0;
};

}  // namespace hccl::verbs::test
