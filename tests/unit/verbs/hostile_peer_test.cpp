// SPDX-License-Identifier: Apache-2.0
// Tests on an RDMA device, with a hostile peer, that the device refuses writes to memory that is
// not open to the peer's queue pair.
#include "base/interfaces.h"
#include "verbs/device.h"
#include "verbs/port_choice.h"
#include "verbs/ports.h"
#include "verbs/queue_pair.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

constexpr QueuePair::Depths kDepths{.requests = 64, .arrivals = 64, .inline_bytes = 0};
constexpr std::byte kOriginal{0xA5};
constexpr std::byte kHostile{0x66};
constexpr std::size_t kBytes = std::size_t{512} << 10;
constexpr std::size_t kBegin = 1024;  // the open part
constexpr std::size_t kOpen = (std::size_t{256} << 10) + 1000;

// Polls until `done` returns true, for at most 20 s.
template <class Condition>
bool poll_until(QueuePair& pair, const Condition& done) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  while (!done() && !deadline.expired()) {
    static_cast<void>(pair.poll());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return done();
}

// Two connected queue pairs of this process. The victim opens a part of its memory to the intruder,
// by a window or, as for adverts on devices that do not confine peers to windows, by a registration
// of this part.
class HostilePeers : public testing::TestWithParam<PeerAccess> {
 protected:
  struct Connection {
    std::unique_ptr<QueuePair> victim;
    std::unique_ptr<QueuePair> intruder;
  };

  void SetUp() override {
    const VerbsLibrary* const library = verbs_library();
    if (library == nullptr) GTEST_SKIP() << "needs rdma: " << why_no_verbs_library();
    const PortChoice choice = choose_ports(list_ports(*library), {}, local_interfaces());
    if (choice.usable.empty()) GTEST_SKIP() << "needs rdma: " << choice.why_none;
    device_ = RdmaDevice::open(*library, choice.usable.front());
    const bool by_window = GetParam() == PeerAccess::window;
    if (by_window && !device_->has_windows())
      GTEST_SKIP() << "needs memory windows: see decision 29";
    own_ = device_->try_register(source_, PeerAccess::none).value();
    opened_ = device_->try_register(
        by_window && device_->confines_windows() ? std::span(memory_) : open_part(), GetParam());
    key_ = opened_->remote_key();
    connection_ = connect();
    if (by_window) window_ = device_->allocate_window();
    if (by_window) open_window();
  }

  void open_window() {
    const std::uint64_t request = connection_.victim->open(*window_, *opened_, open_part());
    key_ = window_->rkey;
    ASSERT_TRUE(poll_until(*connection_.victim,
                           [&] { return connection_.victim->completed() >= request; }));
  }
  // Withdraws the intruder's right to write.
  void close() {
    if (!window_) return opened_.reset();
    const std::uint64_t request = connection_.victim->close(*window_);
    ASSERT_TRUE(poll_until(*connection_.victim,
                           [&] { return connection_.victim->completed() >= request; }));
  }

  [[nodiscard]] Connection connect() const {
    Connection result{std::make_unique<QueuePair>(device_, kDepths),
                      std::make_unique<QueuePair>(device_, kDepths)};
    const auto info = [&](const QueuePair& pair) {
      return QpInfo{.queue_pair = pair.number(),
                    .first_packet = pair.first_packet(),
                    .gid = device_->port().gid.bytes,
                    .mtu = device_->port().mtu};
    };
    const auto ends = [&](int own, int peer) {
      return ConnectionEnds{own, peer, "localhost", device_->port().device, 1, "", "", 1024};
    };
    result.victim->connect(info(*result.intruder), ends(0, 1));
    result.intruder->connect(info(*result.victim), ends(1, 0));
    return result;
  }
  // Writes from the intruder's memory. Returns the failure of the queue pair, or an empty text.
  [[nodiscard]] std::string write(QueuePair& from, std::size_t offset, std::size_t bytes,
                                  std::uint32_t key) {
    const std::uint64_t number =
        from.write(std::span(source_).first(bytes), own_.local_key(),
                   {reinterpret_cast<std::uintptr_t>(memory_.data()) + offset, key}, 7);
    EXPECT_TRUE(poll_until(
        from, [&] { return from.completed() >= number || !from.failure().text.empty(); }));
    return from.failure().text;
  }
  void expect_refused(QueuePair& from, std::size_t offset, std::size_t bytes, std::uint32_t key) {
    const std::string failure = write(from, offset, bytes, key);
    EXPECT_NE(failure.find("remote access error"), std::string::npos) << failure;
    EXPECT_NE(failure.find("rank 0"), std::string::npos) << failure;
    EXPECT_TRUE(std::ranges::all_of(memory_, [](std::byte each) { return each == kOriginal; }));
  }
  [[nodiscard]] std::span<std::byte> open_part() {
    return std::span(memory_).subspan(kBegin, kOpen);
  }
  [[nodiscard]] QueuePair& intruder() const { return *connection_.intruder; }

  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes, kOriginal);
  std::vector<std::byte> source_ = std::vector<std::byte>(kBytes, kHostile);
  std::shared_ptr<RdmaDevice> device_;
  Registration own_;
  std::optional<Registration> opened_;
  std::uint32_t key_ = 0;  // with which the intruder may write
  Connection connection_;
  MemoryWindow window_;  // destroyed before the queue pairs
};

INSTANTIATE_TEST_SUITE_P(Access, HostilePeers, testing::Values(PeerAccess::window, PeerAccess::key),
                         [](const auto& access) {
                           return access.param == PeerAccess::window ? "Window" : "Key";
                         });

// These promises hold for windows only.
class HostilePeersAtWindow : public HostilePeers {};

INSTANTIATE_TEST_SUITE_P(Access, HostilePeersAtWindow, testing::Values(PeerAccess::window),
                         [](const auto&) { return "Window"; });

TEST_P(HostilePeers, MayWriteToOpenPart) {
  EXPECT_EQ(write(intruder(), kBegin, kOpen, key_), "");
  for (std::size_t i = 0; i < kBytes; ++i) {
    const bool open = i >= kBegin && i < kBegin + kOpen;
    ASSERT_EQ(memory_[i], open ? kHostile : kOriginal) << i;
  }
}

TEST_P(HostilePeers, CannotWriteAfterOpenPart) {
  expect_refused(intruder(), kBegin + kOpen, 1, key_);
}

TEST_P(HostilePeers, CannotWriteBeforeOpenPart) { expect_refused(intruder(), kBegin - 1, 1, key_); }

TEST_P(HostilePeers, CannotExceedOpenPart) { expect_refused(intruder(), kBegin, kOpen + 1, key_); }

TEST_P(HostilePeersAtWindow, CannotUseKeyOfRegistration) {
  expect_refused(intruder(), kBegin, 1, opened_->remote_key());
}

TEST_P(HostilePeersAtWindow, CannotUseOtherQueuePair) {
  const Connection other = connect();
  expect_refused(*other.intruder, kBegin, 1, key_);
}

TEST_P(HostilePeers, CannotWriteAfterEnd) {
  close();
  expect_refused(intruder(), kBegin, 1, key_);
}

TEST_P(HostilePeersAtWindow, CannotUseOldKey) {
  const std::uint32_t old = key_;
  close();
  open_window();
  EXPECT_NE(key_, old);
  expect_refused(intruder(), kBegin, 1, old);
}

// The text that the victim gets must name the intruder.
TEST_P(HostilePeers, AreNamed) {
  expect_refused(intruder(), 0, 1, key_);
  QueuePair& victim = *connection_.victim;
  ASSERT_TRUE(poll_until(victim, [&] { return !victim.failure().text.empty(); }));
  EXPECT_TRUE(victim.failure().peer_lost);
  EXPECT_EQ(victim.failure().text.find("rank 1 (host localhost, "), 0U) << victim.failure().text;
  EXPECT_NE(victim.failure().text.find("tried to write to memory that is not open to it"),
            std::string::npos)
      << victim.failure().text;
}

}  // namespace
}  // namespace hccl::verbs
