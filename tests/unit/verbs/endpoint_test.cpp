// SPDX-License-Identifier: Apache-2.0
// Tests how endpoints connect, sleep and end, step by step.
#include "base/text.h"
#include "endpoints.h"
#include "samples.h"
#include "stream_driver.h"
#include "verbs/final_ack.h"

#include <functional>

#include <poll.h>
#include <unistd.h>

namespace hccl::verbs {
namespace {

using test::EndpointEnd;
using transport::PeerLost;

class Endpoints : public testing::Test {
 protected:
  void SetUp() override { start(0); }
  void TearDown() override {
    wire_.prompt = true;  // completes the last writes
    wire_.run();
    near_.reset();
    far_.reset();
    wire_.expect_clean();
  }

  void start(int after) {
    sockets_ = {};
    start_with_sockets(after);
  }
  void start_with_sockets(int after) {
    near_ = std::make_unique<EndpointEnd>(wire_, 0, std::move(sockets_.first), kNoLimit, after);
    far_ = std::make_unique<EndpointEnd>(wire_, 1, std::move(sockets_.second), kNoLimit);
    near_->cache().add_region(near_memory_.region());
    far_->cache().add_region(far_memory_.region());
  }
  // Polls both ends until they are connected.
  void connect_to() {
    for (int i = 0; i < 10 && !(near().connected() && far().connected()); ++i) {
      EXPECT_EQ(near().try_receive(1).size(), 0U);
      EXPECT_EQ(far().try_receive(1).size(), 0U);
      wire_.run();  // opens the memory to the peers
    }
    ASSERT_TRUE(near().connected() && far().connected());
  }
  [[nodiscard]] VerbsEndpoint& near() { return near_->endpoint(); }
  [[nodiscard]] VerbsEndpoint& far() { return far_->endpoint(); }
  // Returns true if the endpoint refuses to sleep, or would be woken at once.
  [[nodiscard]] static bool wakes(VerbsEndpoint& endpoint, transport::Interest interest) {
    transport::SleepPlan plan;
    if (!endpoint.begin_sleep(interest, plan)) return true;
    const bool called = ::poll(plan.descriptors.data(), plan.descriptors.size(), 0) > 0;
    endpoint.end_sleep();
    return called;
  }
  // Returns a part of `memory` that lies within one granule, so that one lease covers it.
  [[nodiscard]] static std::span<std::byte> within_a_granule(const test::ProgramMemory& memory,
                                                             std::size_t bytes) {
    const std::size_t edge = 1024 * kKiB - test::ProgramMemory::kOffset % (1024 * kKiB);
    return memory.all().subspan(edge, bytes);
  }
  // Returns "lost: " or the error code, followed by the text that `function` throws, or "nothing"
  // if `function` throws no error.
  [[nodiscard]] static std::string thrown_by(const std::function<void()>& function) {
    try {
      function();
    } catch (const PeerLost& lost) {
      return text("lost: ", lost.what());
    } catch (const Error& error) {
      return text(error.code(), ": ", error.what());
    }
    return "nothing";
  }
  [[nodiscard]] static std::string receiving_throws(VerbsEndpoint& endpoint) {
    return thrown_by([&] {
      for (int i = 0; i < 1000; ++i) static_cast<void>(endpoint.try_receive(1));
    });
  }

  test::FakeWire wire_;
  test::SocketPair sockets_;
  test::ProgramMemory near_memory_;
  test::ProgramMemory far_memory_;
  std::unique_ptr<EndpointEnd> near_;
  std::unique_ptr<EndpointEnd> far_;
};

TEST_F(Endpoints, ConnectWhenSocketIsReady) {
  start(3);
  EXPECT_FALSE(near().connected());
  EXPECT_EQ(near().try_send(std::as_bytes(std::span("a", 1))), 0U);
  EXPECT_TRUE(near().flushed());
  near().release(0);
  connect_to();
  EXPECT_EQ(near().try_send(std::as_bytes(std::span("abc", 3))), 3U);
  wire_.run();
  const auto view = far().try_receive(10);
  ASSERT_EQ(view.size(), 3U);
  EXPECT_EQ(view[2], std::byte{'c'});
  far().release(3);
  EXPECT_EQ(far().counters().bytes_received, 3U);
}

TEST_F(Endpoints, SendNothingBeforePeerIsReady) {
  EXPECT_EQ(near().try_receive(1).size(), 0U);
  EXPECT_EQ(far().try_receive(1).size(), 0U);  // reads the near end's QpInfo
  EXPECT_EQ(near().try_receive(1).size(), 0U);
  EXPECT_EQ(far().try_receive(1).size(), 0U);
  EXPECT_FALSE(near().connected() || far().connected()) << "the memory is not open to the peers";
  wire_.run();
  EXPECT_EQ(far().try_receive(1).size(), 0U);
  EXPECT_FALSE(far().connected());
  EXPECT_EQ(far().try_send(std::as_bytes(std::span("a", 1))), 0U);
  EXPECT_EQ(near().try_receive(1).size(), 0U);
  EXPECT_TRUE(near().connected());
  EXPECT_EQ(near().try_send(std::as_bytes(std::span("a", 1))), 1U);
  wire_.run();
  EXPECT_EQ(far().try_receive(1).size(), 1U);
}

TEST_F(Endpoints, RefuseOtherFormat) {
  test::SocketPair sockets;
  far_ = std::make_unique<EndpointEnd>(wire_, 1, std::move(sockets.first), kNoLimit);
  const Bytes noise(kQpInfoBytes, std::byte{7});
  ASSERT_EQ(write(sockets.second.get(), noise.data(), noise.size()), kQpInfoBytes);
  EXPECT_EQ(receiving_throws(far()),
            text(hcclSystemError,
                 ": rank 0 has described its queue pair in an unknown format; install the same "
                 "version of hccl on all ranks"));
}

TEST_F(Endpoints, ReportPeerLostWhileConnecting) {
  EXPECT_EQ(near().try_receive(1).size(), 0U);
  far_->end();
  start(0);
  EXPECT_EQ(near().try_receive(1).size(), 0U);
  EXPECT_EQ(far().try_receive(1).size(), 0U);
  far_->end();
  wire_.prompt = true;
  const std::string what = receiving_throws(near());
  EXPECT_EQ(what.find("lost: "), 0U) << what;
  EXPECT_EQ(receiving_throws(near()), what) << "every later call must fail, too";
}

TEST_F(Endpoints, ReceiveDataSentBeforePeerEnded) {
  connect_to();
  EXPECT_EQ(far().try_send(std::as_bytes(std::span("last", 4))), 4U);
  wire_.prompt = true;
  wire_.run();
  far_->end();
  EXPECT_EQ(near().try_receive(4).size(), 4U);
  near().release(4);
  const std::string what = receiving_throws(near());
  EXPECT_NE(what.find("its process has closed the connection or exited; see that rank's output"),
            std::string::npos)
      << what;
}

// The last acknowledgement may be lost, and a peer that has destroyed its queue pair cannot repeat
// it. The bytes that the peer has taken must still count as flushed.
TEST_F(Endpoints, FlushBytesTakenByDepartedPeer) {
  for (const bool takes_all : {true, false}) {
    start(0);
    connect_to();
    const auto part = within_a_granule(near_memory_, 100 * kKiB);
    EXPECT_EQ(near().try_send(part), part.size());
    for (const std::uint32_t pair : wire_.pairs()) wire_.deliver(pair);
    const auto destination = within_a_granule(far_memory_, part.size() - (takes_all ? 0 : 1));
    EXPECT_EQ(far().try_receive_into(destination), destination.size());
    EXPECT_FALSE(near().flushed());
    far().finish(Deadline::after(std::chrono::milliseconds(1)));
    far_->end();
    if (takes_all) {
      bool flushed = false;
      for (int i = 0; i < 1000 && !flushed; ++i) flushed = near().flushed();
      EXPECT_TRUE(flushed);
      EXPECT_EQ(receiving_throws(near()).find("lost: "), 0U) << "the peer is lost all the same";
    } else {
      EXPECT_EQ(thrown_by([&] {
                  for (int i = 0; i < 1000; ++i) static_cast<void>(near().flushed());
                }).find("lost: "),
                0U);
    }
    near().cut();
  }
}

// Sends a buffer to a destination that the near end has advertised.
class DirectReceive : public Endpoints {
 protected:
  void SetUp() override {
    sockets_ = {};
    far_copy_ = FileDescriptor(dup(sockets_.second.get()));
    start_with_sockets(0);
    connect_to();
    EXPECT_EQ(near().try_receive_into(destination()), 0U);
    wire_.run();
    const auto source = within_a_granule(far_memory_, kBytes);
    EXPECT_EQ(far().try_send(source), source.size());
    wire_.run();
  }
  [[nodiscard]] std::span<std::byte> destination() const {
    return within_a_granule(near_memory_, kBytes);
  }
  // Makes the near end read its socket.
  void read_socket() {
    for (int i = 0; i < 2; ++i) static_cast<void>(wakes(near(), {.readable = i == 0}));
  }

  static constexpr std::size_t kBytes = 100 * kKiB;
  FileDescriptor far_copy_;
};

// The queue pair may never close the window, but the call has all its data.
TEST_F(DirectReceive, IsCompleteAlthoughSenderHasExited) {
  EXPECT_TRUE(far().flushed());
  shutdown(far_copy_.get(), SHUT_RDWR);
  read_socket();
  EXPECT_EQ(near().try_receive_into(destination()), kBytes);
  EXPECT_TRUE(near().flushed());
  EXPECT_EQ(receiving_throws(near()).find("lost: "), 0U);
}

// A hostile peer may send its final acknowledgement early.
TEST_F(DirectReceive, WaitsUntilPeerCannotWriteWhateverThePeerSays) {
  FinalAck::send(far_copy_.get(), 0);
  read_socket();
  EXPECT_EQ(near().try_receive_into(destination()), kBytes);
  for (int i = 0; i < 600; ++i) EXPECT_FALSE(near().flushed());
  wire_.run();
  EXPECT_TRUE(near().flushed());
}

TEST_F(Endpoints, CutLosesStreamAtBothEnds) {
  connect_to();
  const auto part = within_a_granule(near_memory_, 100 * kKiB);
  EXPECT_EQ(near().try_send(part), part.size());
  EXPECT_FALSE(near().flushed());
  near().cut();
  EXPECT_NE(receiving_throws(near()).find("this rank cut the stream because a call failed"),
            std::string::npos);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(near().try_send(part)); }).find("lost: "), 0U);
  EXPECT_TRUE(near().flushed()) << "a stream that was cut still reads the memory";
  EXPECT_EQ(receiving_throws(far()).find("lost: "), 0U);
  far().cut();
}

TEST_F(Endpoints, ImpossibleMessageIsInternalError) {
  connect_to();
  // The far end sends its only byte directly, yet receives a credit for a byte sent through the
  // ring.
  EXPECT_EQ(near().try_receive_into(within_a_granule(near_memory_, 100 * kKiB)), 0U);
  wire_.run();
  EXPECT_TRUE(far().try_receive(1).empty()) << "this call processes the advert";
  wire_.distort(encode({Immediate::Kind::direct, 1, 1}));
  EXPECT_EQ(far().try_send(std::as_bytes(std::span("a", 1))), 1U);
  wire_.distort(encode({Immediate::Kind::credit, 1, 1}));
  EXPECT_EQ(near().try_send(std::as_bytes(std::span("a", 1))), 1U);
  wire_.run();
  EXPECT_EQ(
      receiving_throws(far()),
      text(hcclInternalError,
           ": rank 0 has written more than rank 1 has room for; install the same version of hccl "
           "on all ranks"));
}

TEST_F(Endpoints, SleepOnlyWhenNoCompletionIsLeft) {
  connect_to();
  // In the far end's completion queue, 120 completed writes precede the near end's message.
  EXPECT_EQ(near().try_receive_into(within_a_granule(near_memory_, 1024 * kKiB)), 0U);
  wire_.run();
  const auto source = within_a_granule(far_memory_, 8 * kKiB);
  for (int i = 0; i < 120; ++i) EXPECT_EQ(far().try_send(source), source.size());
  wire_.run();
  EXPECT_EQ(near().try_send(std::as_bytes(std::span("a", 1))), 1U);
  wire_.run();
  for (int i = 0; i < 10 && far().try_receive(1).empty(); ++i)
    EXPECT_TRUE(wakes(far(), {.readable = true})) << i;
  EXPECT_EQ(far().try_receive(1).size(), 1U);
}

TEST_F(Endpoints, SleepOnlyWithoutRoomInRingAndDestination) {
  connect_to();
  // The far end sends the maximum number of messages. The 20 KiB that are then left in the near
  // end's destination are alone too few to wake the sender. Together with the room in the ring,
  // they must wake it.
  const auto destination = within_a_granule(near_memory_, (128 * 8 + 20) * kKiB);
  EXPECT_EQ(near().try_receive_into(destination), 0U);
  wire_.run();
  const auto source = within_a_granule(far_memory_, 8 * kKiB);
  for (std::uint32_t i = 0; i < kMaxMessages; ++i) EXPECT_EQ(far().try_send(source), source.size());
  EXPECT_EQ(far().try_send(source), 0U);
  wire_.run();
  while (!far().flushed()) continue;
  std::size_t taken = 0;
  while (taken < 1024 * kKiB) taken += near().try_receive_into(destination.subspan(taken));
  wire_.run();
  EXPECT_TRUE(wakes(far(), {.writable = true})) << "everything has been acknowledged";
  EXPECT_EQ(far().try_send(source), source.size());
}

}  // namespace
}  // namespace hccl::verbs
