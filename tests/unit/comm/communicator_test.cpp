// SPDX-License-Identifier: Apache-2.0
// Tests a communicator over a fake back end: lanes, staging, faults, plans and destroyed streams.
#include "fake_backend.h"

#include <array>

#include <gtest/gtest.h>

namespace hccl::comm {
namespace {

using Log = std::vector<std::string>;

class CommunicatorOverFake : public testing::Test {
 protected:
  [[nodiscard]] std::uint64_t on_host(std::size_t at = 0) const {
    return reinterpret_cast<std::uintptr_t>(host_.data() + at);
  }

  FakeCommunicator fake_;
  FakeBackend& backend_ = *fake_.backend;
  Communicator& communicator_ = *fake_.communicator;
  std::shared_ptr<device::Stream> stream_ = fake_.device->create_stream();
  const std::uint64_t memory_ = fake_.device->arena().allocate(4096, "a test's buffer");
  std::array<float, 64> host_{};
};

TEST_F(CommunicatorOverFake, NumbersStreamsByFirstCollective) {
  const auto other = fake_.device->create_stream();
  communicator_.enqueue(*other, message(Direction::send, 1, memory_));
  communicator_.enqueue(*stream_, all_reduce(1, memory_, memory_));
  communicator_.enqueue(*other, all_reduce(2, memory_, memory_));
  communicator_.enqueue(*stream_, all_reduce(3, memory_, memory_));
  static_cast<void>(other->synchronize());
  Log lanes;
  for (const std::string& entry : fake_.log_after(stream_)) {
    if (entry.starts_with("lane")) lanes.push_back(entry);
  }
  EXPECT_EQ(lanes, Log({"lane 0 of b", "lane 1 of a"}));
}

TEST_F(CommunicatorOverFake, RunsCallsOfStreamInOrder) {
  communicator_.enqueue(*stream_, message(Direction::receive, 2, memory_));
  communicator_.enqueue(*stream_, all_reduce(1, memory_, memory_));
  communicator_.enqueue(*stream_, message(Direction::send, 1, memory_));
  EXPECT_EQ(fake_.ran_on(stream_), Log({"exchange a recv(1, float) from rank 2 before lane 0",
                                        "run a all_reduce(1, float, sum)",
                                        "exchange a send(1, float) to rank 1 after lane 0"}));
}

TEST_F(CommunicatorOverFake, StagesHostMemoryIfBackendCannotReachIt) {
  backend_.stages = true;
  communicator_.enqueue(*stream_, all_reduce(1, on_host(), on_host(1)));
  communicator_.enqueue(*stream_, all_reduce(2, memory_, memory_));
  communicator_.enqueue(*stream_, all_reduce(3, memory_, on_host()));
  communicator_.enqueue(*stream_, message(Direction::send, 1, on_host()));
  std::string staged;
  for (const std::string& entry : fake_.ran_on(stream_))
    staged += entry.find("staged") != std::string::npos ? 'y' : 'n';
  EXPECT_EQ(staged, "ynyy");
}

TEST_F(CommunicatorOverFake, StagesNothingIfBackendReadsHostMemory) {
  communicator_.enqueue(*stream_, all_reduce(1, on_host(), on_host(1)));
  communicator_.enqueue(*stream_, message(Direction::send, 1, on_host()));
  for (const std::string& entry : fake_.log_after(stream_))
    EXPECT_EQ(entry.find("staged"), std::string::npos) << entry;
}

TEST_F(CommunicatorOverFake, CopiesMessagesToItselfWithoutBackend) {
  host_[0] = 3;
  communicator_.enqueue(*stream_, {message(Direction::send, 0, on_host()),
                                   message(Direction::receive, 0, on_host(1))});
  EXPECT_EQ(fake_.log_after(stream_), Log());
  EXPECT_EQ(host_[1], 3);
}

TEST_F(CommunicatorOverFake, TurnsErrorOfCallIntoFault) {
  backend_.error_of_next_run = "a cable is cut";
  communicator_.enqueue(*stream_, all_reduce(1, memory_, memory_));
  EXPECT_EQ(stream_->synchronize(), device::Outcome::collective_failed);
  EXPECT_TRUE(communicator_.failed());
  EXPECT_EQ(communicator_.async_error(), hcclSystemError);
  EXPECT_STREQ(communicator_.async_error_text(), "rank 0: a cable is cut");
  EXPECT_THROW(communicator_.enqueue(*stream_, all_reduce(1, memory_, memory_)), Error);
  EXPECT_THROW(communicator_.enqueue(*stream_, message(Direction::send, 1, memory_)), Error);
  EXPECT_THROW(communicator_.check_usable(*stream_), Error);
  EXPECT_EQ(backend_.log(), Log({"lane 0 of a"}));  // nothing ran
}

TEST_F(CommunicatorOverFake, FailsIfNumberedMessageCannotBeQueued) {
  PointToPoint call = message(Direction::send, 1, memory_);
  communicator_.begin_use(*stream_);
  communicator_.number(*stream_, call);
  stream_->close();
  EXPECT_THROW(communicator_.enqueue_numbered(*stream_, MessageList(call), {}), std::exception);
  EXPECT_TRUE(communicator_.failed());
}

TEST_F(CommunicatorOverFake, DoesNotFailIfStreamIsRefusedBeforeNumbering) {
  stream_->close();
  EXPECT_THROW(communicator_.enqueue(*stream_, message(Direction::send, 1, memory_)),
               std::exception);
  EXPECT_THROW(communicator_.enqueue(*stream_, all_reduce(1, memory_, memory_)), std::exception);
  EXPECT_FALSE(communicator_.failed());
}

TEST_F(CommunicatorOverFake, RefusesStreamsOfOtherDevices) {
  device::Device other(1, 1, FileDescriptor{}, 16 << 20);
  const auto stream = other.create_stream();
  EXPECT_THROW(communicator_.enqueue(*stream, all_reduce(1, memory_, memory_)), Error);
}

TEST_F(CommunicatorOverFake, ClosesBackendStreamOfDestroyedStream) {
  communicator_.enqueue(*stream_, all_reduce(1, memory_, memory_));
  fake_.device->destroy_stream(stream_);
  stream_.reset();
  EXPECT_EQ(backend_.log().back(), "close a");
}

TEST_F(CommunicatorOverFake, ProbesRanksInTurn) {
  const auto first = communicator_.probe(std::chrono::milliseconds(0));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->source, 1);
  static_cast<void>(communicator_.probe(std::chrono::milliseconds(0)));
  EXPECT_EQ(backend_.log(), Log({"probe from 0", "probe from 2"}));
}

TEST_F(CommunicatorOverFake, WritesPlanBelowHeadline) {
  EXPECT_EQ(communicator_.plan_of({Collective::broadcast, 8, 2, false, false}),
            "broadcast of 8 bytes, root 2, rank 0 of 4: fake over memory\na step");
  EXPECT_EQ(communicator_.plan_of({Collective::broadcast, 8, 2, false, true}),
            R"({"collective":"broadcast","bytes":8,"rank":0,"ranks":4,"root":2,)"
            R"("algorithm":"fake","transport":"memory","channels":[a step]})"
            "\n");
}

}  // namespace
}  // namespace hccl::comm
