// SPDX-License-Identifier: Apache-2.0
// Endpoints over the fake wire. They exchange their queue pair parameters over a pair of sockets.
#pragma once

#include "fake_wire.h"
#include "samples.h"
#include "verbs/verbs_endpoint.h"

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace hccl::verbs::test {

// A connection attempt. The first `after` polls return nothing, and the next poll returns the
// socket.
class GivenSocket final : public transport::ConnectionAttempt {
 public:
  GivenSocket(FileDescriptor socket, int after) : socket_(std::move(socket)), after_(after) {}

  std::optional<transport::Connected> poll() override {
    if (after_-- > 0) return std::nullopt;
    return transport::Connected{std::move(socket_), {}};
  }
  void plan_sleep(transport::SleepPlan& plan) override {
    plan.at_most = std::min<Deadline::Duration>(plan.at_most, std::chrono::milliseconds(1));
  }

 private:
  FileDescriptor socket_;
  int after_;
};

struct SocketPair {
  SocketPair() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    first = FileDescriptor(ends[0]);
    second = FileDescriptor(ends[1]);
  }

  FileDescriptor first;
  FileDescriptor second;
};

// An endpoint and its registration cache, with the functions that StreamDriver calls.
class EndpointEnd {
 public:
  // `rank` is 0 or 1. `after` is passed to GivenSocket.
  EndpointEnd(FakeWire& wire, int rank, FileDescriptor socket, std::uint64_t budget, int after = 0)
      : device_(wire.memory().open(v4(10, 77, 0, static_cast<std::uint8_t>(rank + 1)))),
        cache_(std::make_shared<RegistrationCache>(device_, budget)),
        endpoint_(std::make_unique<VerbsEndpoint>(
            rank, 1 - rank, std::make_unique<GivenSocket>(std::move(socket), after), device_,
            cache_, transport::ConnectionLimits{})) {}

  [[nodiscard]] std::size_t send(std::span<const std::span<const std::byte>> parts) {
    return endpoint_->try_send_parts(parts);
  }
  [[nodiscard]] bool flushed() { return endpoint_->flushed(); }
  [[nodiscard]] std::span<const std::byte> lend(std::size_t most) {
    return endpoint_->try_receive(most);
  }
  void release(std::size_t count) { endpoint_->release(count); }
  [[nodiscard]] std::size_t take(std::span<std::byte> destination) {
    return endpoint_->try_receive_into(destination);
  }

  [[nodiscard]] VerbsEndpoint& endpoint() { return *endpoint_; }
  [[nodiscard]] RegistrationCache& cache() { return *cache_; }
  void end() { endpoint_.reset(); }

 private:
  std::shared_ptr<RdmaDevice> device_;
  std::shared_ptr<RegistrationCache> cache_;
  std::unique_ptr<VerbsEndpoint> endpoint_;
};

}  // namespace hccl::verbs::test
