// SPDX-License-Identifier: Apache-2.0
// One end of a stream over the fake wire: the queue pair, sender and receiver of a VerbsEndpoint,
// without its TCP connection.
#pragma once

#include "connected_pairs.h"
#include "verbs/immediate.h"
#include "verbs/receiver.h"
#include "verbs/registration_cache.h"
#include "verbs/sender.h"
#include "verbs/stream_memory.h"
#include "verbs/stream_windows.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <gtest/gtest.h>

namespace hccl::verbs::test {

// The depths that a VerbsEndpoint uses.
constexpr QueuePair::Depths kStreamDepths{.requests = 2 * kMaxMessages + kReservedRequests,
                                          .arrivals = kMaxMessages + kMaxCredits + kMaxAdverts,
                                          .inline_bytes = 128};

class StreamEnd {
 public:
  StreamEnd(FakeWire& wire, int number, std::uint64_t budget,
            const QueuePair::Depths& depths = kStreamDepths)
      : device_(wire.memory().open(v4(10, 77, 0, static_cast<std::uint8_t>(number)))),
        cache_(device_, budget),
        memory_(cache_),
        pair_(device_, depths) {}

  [[nodiscard]] QpInfo info() const {
    QpInfo info = qp_info_of(*device_, pair_);
    info.ring_address = memory_.ring_address();
    info.ring_key = windows_.ring_key();
    info.adverts_address = memory_.adverts_address();
    info.adverts_key = windows_.adverts_key();
    return info;
  }
  void connect_to(const QpInfo& peer) {
    pair_.connect(peer, ends_between(0, 1));
    const QueuePair::Target ring{peer.ring_address, peer.ring_key};
    const QueuePair::Target adverts{peer.adverts_address, peer.adverts_key};
    send_.emplace(pair_, memory_, cache_, ring);
    receive_.emplace(pair_, memory_, cache_, ring, adverts, windows_.destination());
    windows_.open_to(pair_);
  }

  // Handles completions, as most functions of VerbsEndpoint do first.
  void progress() {
    const auto immediates = pair_.poll();
    for (const std::uint32_t immediate : immediates) handle(decode(immediate));
    send_->release_completed();
    receive_->release_completed();
    EXPECT_EQ(pair_.failure().text, "");
    receive_->return_credit(immediates.empty());
  }
  [[nodiscard]] std::size_t send(std::span<const std::span<const std::byte>> parts) {
    progress();
    return send_->send(parts);
  }
  [[nodiscard]] bool flushed() {
    progress();
    return send_->flushed() && receive_->closed();
  }
  [[nodiscard]] std::span<const std::byte> lend(std::size_t most) {
    progress();
    return receive_->lend(most);
  }
  void release(std::size_t count) {
    EXPECT_EQ(receive_->release(count), count);
    receive_->return_credit(false);
  }
  [[nodiscard]] std::size_t take(std::span<std::byte> destination) {
    if (!receive_->has_more()) progress();
    return receive_->take(destination);
  }

  [[nodiscard]] Sender& sending() { return *send_; }
  [[nodiscard]] Receiver& receiving() { return *receive_; }
  [[nodiscard]] QueuePair& pair() { return pair_; }
  [[nodiscard]] const StreamMemory& memory() const { return memory_; }
  [[nodiscard]] RegistrationCache& cache() { return cache_; }
  // Returns the number of received messages of this kind.
  [[nodiscard]] int received(Immediate::Kind kind) const {
    return received_.at(static_cast<std::size_t>(kind));
  }

 private:
  void handle(const Immediate& message) {
    ++received_.at(static_cast<std::size_t>(message.kind));
    switch (message.kind) {
      case Immediate::Kind::data:
      case Immediate::Kind::direct:
        EXPECT_TRUE(receive_->arrive(message));
        break;
      case Immediate::Kind::credit:
        EXPECT_TRUE(send_->credit(message));
        break;
      case Immediate::Kind::advert:
        send_->advertised();
    }
  }

  std::shared_ptr<RdmaDevice> device_;
  RegistrationCache cache_;
  StreamMemory memory_;
  QueuePair pair_;
  std::optional<Sender> send_;
  std::optional<Receiver> receive_;
  StreamWindows windows_{*device_, memory_};
  std::array<int, 4> received_{};
};

}  // namespace hccl::verbs::test
