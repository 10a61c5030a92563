// SPDX-License-Identifier: Apache-2.0
// A fixture with two queue pairs, connected over the fake wire. Each end has memory to which the
// other end may write. The test fails if the wire has recorded a violation.
#pragma once

#include "fake_wire.h"
#include "samples.h"
#include "verbs/queue_pair.h"

#include <array>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::verbs::test {

inline QpInfo qp_info_of(const RdmaDevice& device, const QueuePair& pair) {
  return {.queue_pair = pair.number(),
          .first_packet = pair.first_packet(),
          .gid = device.port().gid.bytes,
          .mtu = device.port().mtu};
}

inline ConnectionEnds ends_between(int own, int peer) {
  return {own, peer, "node-b", "fake0", 1, "10.77.0.1", "10.77.0.2", 4096};
}

// One queue pair and its memory, to which the peer may write.
struct PairEnd {
  PairEnd(FakeWire& wire, int number, const QueuePair::Depths& depths)
      : device(wire.memory().open(v4(10, 77, 0, static_cast<std::uint8_t>(number)))),
        pair(std::make_unique<QueuePair>(device, depths)),
        memory(4096, std::byte{0xA5}),
        registration(device->try_register(memory, PeerAccess::window).value()) {}

  [[nodiscard]] QueuePair::Target target(std::size_t offset = 0) const {
    return {reinterpret_cast<std::uintptr_t>(memory.data() + offset), registration.remote_key()};
  }

  std::shared_ptr<RdmaDevice> device;
  std::unique_ptr<QueuePair> pair;
  std::vector<std::byte> memory;
  Registration registration;
};

class ConnectedPairs : public testing::Test {
 protected:
  static constexpr QueuePair::Depths kDepths{.requests = 64, .arrivals = 80, .inline_bytes = 128};

  void SetUp() override { start(kDepths); }
  void TearDown() override {
    near_.reset();
    far_.reset();
    wire_.expect_clean();
    EXPECT_EQ(wire_.memory().domains(), 0);
    EXPECT_EQ(wire_.memory().verbs().open_devices, 0);
  }
  void start(const QueuePair::Depths& depths) {
    near_.reset();
    far_.reset();
    wire_.memory().verbs().devices.front().has_windows = false;
    near_ = std::make_unique<PairEnd>(wire_, 1, depths);
    far_ = std::make_unique<PairEnd>(wire_, 2, depths);
    near().connect(qp_info_of(*far_->device, far()), ends_between(0, 3));
    far().connect(qp_info_of(*near_->device, near()), ends_between(3, 0));
  }

  [[nodiscard]] QueuePair& near() { return *near_->pair; }
  [[nodiscard]] QueuePair& far() { return *far_->pair; }
  // Posts a write without data from the near end to the far end.
  std::uint64_t post_immediate(std::uint32_t immediate) {
    return near().write({}, 0, {}, immediate);
  }
  // Posts a write from the near end's memory to the same offset in the far end's memory.
  std::uint64_t write(std::size_t bytes, std::uint32_t immediate, std::size_t offset = 0) {
    return near().write(std::span(near_->memory).subspan(offset, bytes),
                        near_->registration.local_key(), far_->target(offset), immediate);
  }
  // Polls until a poll returns no immediate. Returns all immediates received.
  [[nodiscard]] static std::vector<std::uint32_t> receive_all(QueuePair& pair) {
    std::vector<std::uint32_t> received;
    for (auto more = pair.poll(); !more.empty(); more = pair.poll())
      received.insert(received.end(), more.begin(), more.end());
    return received;
  }

  FakeWire wire_;
  std::unique_ptr<PairEnd> near_;
  std::unique_ptr<PairEnd> far_;
};

}  // namespace hccl::verbs::test
