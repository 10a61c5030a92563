// SPDX-License-Identifier: Apache-2.0
// One end of a stream over the fake wire: what VerbsEndpoint is made of, without its connection.
#pragma once

#include "connected_pairs.h"
#include "verbs/message.h"
#include "verbs/receive_side.h"
#include "verbs/registration_cache.h"
#include "verbs/send_side.h"
#include "verbs/stream_memory.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <gtest/gtest.h>

namespace hccl::verbs::test {

// As many as an endpoint has.
constexpr QueuePair::Depths kStreamDepths{
    .writes = 2 * kMostMessages + kPlacesForOthers,
    .arrivals = kMostMessages + kMostCredits + kMostInvitations,
    .inline_bytes = 128};

class StreamEnd {
 public:
  StreamEnd(FakeWire& wire, int number, std::uint64_t budget,
            const QueuePair::Depths& depths = kStreamDepths)
      : device_(wire.memory().open(v4(10, 77, 0, static_cast<std::uint8_t>(number)))),
        cache_(device_, budget),
        memory_(cache_),
        pair_(device_, depths) {}

  [[nodiscard]] Facts facts() const {
    Facts facts = facts_of(*device_, pair_);
    facts.ring_address = memory_.ring_address();
    facts.ring_key = memory_.ring_key();
    facts.notes_address = memory_.notes_address();
    facts.notes_key = memory_.notes_key();
    return facts;
  }
  void meet(const Facts& peer) {
    pair_.connect(peer, link_between(0, 1));
    const QueuePair::Target ring{peer.ring_address, peer.ring_key};
    const QueuePair::Target notes{peer.notes_address, peer.notes_key};
    send_.emplace(pair_, memory_, cache_, ring);
    receive_.emplace(pair_, memory_, cache_, ring, notes);
  }

  // What an endpoint does first in every call.
  void progress() {
    const auto immediates = pair_.poll();
    for (const std::uint32_t immediate : immediates) hear(decode(immediate));
    send_->settle();
    EXPECT_EQ(pair_.failure().text, "");
    receive_->tell_credit(immediates.empty());
  }
  [[nodiscard]] std::size_t send(std::span<const std::span<const std::byte>> parts) {
    progress();
    return send_->send(parts);
  }
  [[nodiscard]] bool flushed() {
    progress();
    return send_->flushed();
  }
  [[nodiscard]] std::span<const std::byte> lend(std::size_t most) {
    progress();
    return receive_->lend(most);
  }
  void release(std::size_t count) {
    EXPECT_EQ(receive_->release(count), count);
    receive_->tell_credit(false);
  }
  [[nodiscard]] std::size_t take(std::span<std::byte> destination) {
    if (!receive_->has_more()) progress();
    return receive_->take(destination);
  }

  [[nodiscard]] SendSide& sending() { return *send_; }
  [[nodiscard]] ReceiveSide& receiving() { return *receive_; }
  [[nodiscard]] QueuePair& pair() { return pair_; }
  [[nodiscard]] RegistrationCache& cache() { return cache_; }
  // Messages of that kind that have come.
  [[nodiscard]] int heard(Message::Kind kind) const {
    return heard_.at(static_cast<std::size_t>(kind));
  }

 private:
  void hear(const Message& message) {
    ++heard_.at(static_cast<std::size_t>(message.kind));
    switch (message.kind) {
      case Message::Kind::data:
      case Message::Kind::direct:
        EXPECT_TRUE(receive_->arrive(message));
        break;
      case Message::Kind::credit:
        EXPECT_TRUE(send_->credit(message));
        break;
      case Message::Kind::invitation:
        send_->invited();
    }
  }

  std::shared_ptr<Device> device_;
  RegistrationCache cache_;
  StreamMemory memory_;
  QueuePair pair_;
  std::optional<SendSide> send_;
  std::optional<ReceiveSide> receive_;
  std::array<int, 4> heard_{};
};

}  // namespace hccl::verbs::test
