// SPDX-License-Identifier: Apache-2.0
// Streams between ranks that run in one thread. Each stream takes and lends random numbers of bytes
// up to its capacity, so that partial sends and receives occur as over a real transport.
#pragma once

#include "network/execution.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>

namespace hccl::test {

class LooseWires {
 public:
  LooseWires(std::uint64_t seed, std::size_t capacity) : random_(seed), capacity_(capacity) {}

  struct Wire {
    std::deque<std::byte> bytes;
    std::uint64_t total = 0;
  };

  [[nodiscard]] Wire& wire(int from, int to, std::uint32_t channel) {
    return wires_[{channel, from, to}];
  }
  // Decides what Endpoint::flushed() returns. If it is not set, the result is random.
  std::function<bool(int from, int to)> is_flushed;

  [[nodiscard]] std::size_t random_up_to(std::size_t most) {
    return most == 0 ? 0 : random_() % (most + 1);
  }
  [[nodiscard]] std::size_t room(const Wire& wire) {
    return random_up_to(capacity_ - wire.bytes.size());
  }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  // Returns whether all bytes sent have been received.
  [[nodiscard]] bool empty() const {
    return std::ranges::all_of(wires_,
                               [](const auto& entry) { return entry.second.bytes.empty(); });
  }

 private:
  std::mt19937_64 random_;
  std::size_t capacity_;
  std::map<std::tuple<std::uint32_t, int, int>, Wire> wires_;
};

class LooseEndpoint final : public transport::Endpoint {
 public:
  LooseEndpoint(LooseWires& wires, int rank, int peer, std::uint32_t channel)
      : Endpoint(peer, "loose"),
        wires_(wires),
        rank_(rank),
        out_(wires.wire(rank, peer, channel)),
        in_(wires.wire(peer, rank, channel)) {}

  std::size_t try_send_parts(std::span<const std::span<const std::byte>> parts) override {
    std::size_t room = wires_.room(out_);
    std::size_t taken = 0;
    for (const auto& part : parts) {
      const auto piece = part.first(std::min(part.size(), room));
      out_.bytes.insert(out_.bytes.end(), piece.begin(), piece.end());
      room -= piece.size();
      taken += piece.size();
      if (piece.size() < part.size()) break;
    }
    out_.total += taken;
    return count_sent(taken);
  }
  bool flushed() override {
    return wires_.is_flushed ? wires_.is_flushed(rank_, peer()) : wires_.random_up_to(2) != 0;
  }
  std::span<const std::byte> try_receive(std::size_t most) override {
    // Bytes that are already lent stay lent, and more bytes may be added.
    const std::size_t available = std::min({most, in_.bytes.size(), view_limit()});
    const std::size_t before = std::min(lent_.size(), available);
    const std::size_t count = before + wires_.random_up_to(available - before);
    lent_.assign(in_.bytes.begin(), in_.bytes.begin() + static_cast<std::ptrdiff_t>(count));
    return lent_;
  }
  void release(std::size_t count) override {
    const auto end = static_cast<std::ptrdiff_t>(count);
    in_.bytes.erase(in_.bytes.begin(), in_.bytes.begin() + end);
    lent_.clear();
    static_cast<void>(count_received(count));
  }
  std::size_t view_limit() const override { return wires_.capacity(); }
  std::size_t try_receive_into(std::span<std::byte> destination) override {
    const std::size_t count = wires_.random_up_to(std::min(destination.size(), in_.bytes.size()));
    std::copy_n(in_.bytes.begin(), count, destination.begin());
    release(count);
    return count;
  }
  bool begin_sleep(transport::Interest /*interest*/, transport::SleepPlan& /*plan*/) override {
    return false;
  }
  void end_sleep() noexcept override {}
  bool connected() const override { return true; }

 private:
  LooseWires& wires_;
  int rank_;
  LooseWires::Wire& out_;
  LooseWires::Wire& in_;
  std::vector<std::byte> lent_;
};

// The streams of one rank in one channel.
class LooseStreams final : public network::Streams {
 public:
  LooseStreams(LooseWires& wires, int rank, std::uint32_t channel)
      : wires_(wires), rank_(rank), channel_(channel) {}

  transport::Endpoint& to(int rank) override {
    auto& endpoint = endpoints_[rank];
    if (!endpoint) endpoint = std::make_unique<LooseEndpoint>(wires_, rank_, rank, channel_);
    return *endpoint;
  }
  int number_of(int rank) const override { return rank; }

 private:
  LooseWires& wires_;
  int rank_;
  std::uint32_t channel_;
  std::map<int, std::unique_ptr<LooseEndpoint>> endpoints_;
};

}  // namespace hccl::test
