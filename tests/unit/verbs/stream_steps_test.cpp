// SPDX-License-Identifier: Apache-2.0
// Tests a stream's sender and receiver step by step: which path the bytes take, when sent memory is
// no longer read, and which messages are refused.
#include "base/error.h"
#include "samples.h"
#include "stream_driver.h"
#include "stream_end.h"
#include "thrown.h"

namespace hccl::verbs {
namespace {

using hccl::test::error_of;
using test::FakeWire;
using test::StreamEnd;
using Kind = Immediate::Kind;

class Steps : public testing::Test {
 protected:
  void SetUp() override {
    near_ = std::make_unique<StreamEnd>(wire_, 1, kNoLimit);
    far_ = std::make_unique<StreamEnd>(wire_, 2, kNoLimit);
    near_->connect_to(far_->info());
    far_->connect_to(near_->info());
    wire_.run();
    near_->cache().add_region(near_memory_.region());
    far_->cache().add_region(far_memory_.region());
    test::fill(near_memory_.all(), 1, 0);
  }
  void TearDown() override {
    near_.reset();
    far_.reset();
    wire_.expect_clean();
  }

  // Sends the next bytes of the stream from registered memory. Returns the number of bytes taken.
  [[nodiscard]] std::size_t send(std::size_t bytes) {
    const std::span<const std::byte> part = near_memory_.all().subspan(sent_, bytes);
    const std::size_t taken = near_->send({&part, 1});
    sent_ += taken;
    return taken;
  }
  // Sends the next bytes of the stream from unregistered memory. Returns the number of bytes taken.
  [[nodiscard]] std::size_t send_copied(std::size_t bytes) {
    const auto place = near_memory_.all().subspan(sent_, bytes);
    const std::vector<std::byte> copy(place.begin(), place.end());
    const std::span<const std::byte> part = copy;
    const std::size_t taken = near_->send({&part, 1});
    sent_ += taken;
    return taken;
  }
  // Takes up to `bytes` bytes into the far end's memory, at the same offset as in the near end's
  // memory.
  [[nodiscard]] std::size_t take(std::size_t bytes) {
    const std::size_t taken = far_->take(far_memory_.all().subspan(received_, bytes));
    received_ += taken;
    return taken;
  }
  [[nodiscard]] bool received_bytes_match() const {
    return std::equal(near_memory_.all().begin(),
                      near_memory_.all().begin() + static_cast<std::ptrdiff_t>(received_),
                      far_memory_.all().begin());
  }

  FakeWire wire_;
  test::ProgramMemory near_memory_;
  test::ProgramMemory far_memory_;
  std::unique_ptr<StreamEnd> near_;
  std::unique_ptr<StreamEnd> far_;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
};

TEST_F(Steps, SwitchFromRingToDirectAndBack) {
  EXPECT_EQ(send(100 * kKiB), 100 * kKiB);  // before any advert
  EXPECT_EQ(take(600 * kKiB), 0U);
  EXPECT_EQ(send(100 * kKiB), 100 * kKiB);  // the advert has not arrived
  wire_.run();
  EXPECT_EQ(send(450 * kKiB), 450 * kKiB);  // 400 KiB of these go direct
  wire_.run();
  EXPECT_EQ(take(600 * kKiB), 600 * kKiB);
  EXPECT_TRUE(received_bytes_match());
  EXPECT_EQ(far_->receiving().held(), 50 * kKiB);
  EXPECT_EQ(take(50 * kKiB), 50 * kKiB);
  EXPECT_TRUE(received_bytes_match());
  EXPECT_EQ(far_->received(Kind::direct), static_cast<int>(400 * kKiB / kSlice) + 1);
  EXPECT_EQ(near_->received(Kind::advert), 1);
}

TEST_F(Steps, RingAloneMayFillDestination) {
  EXPECT_EQ(take(100 * kKiB), 0U);
  EXPECT_EQ(send(100 * kKiB), 100 * kKiB);
  wire_.run();
  EXPECT_EQ(take(100 * kKiB), 100 * kKiB);
  EXPECT_TRUE(received_bytes_match());
  EXPECT_EQ(send(50 * kKiB), 50 * kKiB) << "the advert arrives after everything has been sent";
  wire_.run();
  EXPECT_EQ(far_->lend(60 * kKiB).size(), 50 * kKiB) << "no caller waits for the rest";
  EXPECT_EQ(far_->received(Kind::direct), 0);
}

TEST_F(Steps, LimitAdvertsInFlight) {
  for (std::uint32_t i = 0; i < 3 * kMaxAdverts; ++i) {
    EXPECT_EQ(take(16 * kKiB), 0U);
    EXPECT_EQ(send_copied(16 * kKiB), 16 * kKiB);
    wire_.deliver(near_->pair().number());
    EXPECT_EQ(take(16 * kKiB), 16 * kKiB) << i;
  }
  wire_.run();
  EXPECT_EQ(send_copied(16 * kKiB), 16 * kKiB);  // reports that the near end has seen the adverts
  EXPECT_EQ(near_->received(Kind::advert), static_cast<int>(kMaxAdverts));
  wire_.run();
  EXPECT_EQ(take(16 * kKiB), 16 * kKiB);
  EXPECT_EQ(take(16 * kKiB), 0U);
  wire_.run();
  near_->progress();
  EXPECT_EQ(near_->received(Kind::advert), static_cast<int>(kMaxAdverts) + 1);
  EXPECT_TRUE(received_bytes_match());
}

TEST_F(Steps, DestinationIsOpenToItsPeerUntilItIsFull) {
  EXPECT_EQ(take(100 * kKiB), 0U);
  wire_.run();
  const Advert advert = near_->memory().advert(0);
  const std::uint32_t far = far_->pair().number();
  const auto open = wire_.memory().writable_for(far, advert.key);
  ASSERT_TRUE(open);
  EXPECT_EQ(open->address, reinterpret_cast<std::uintptr_t>(far_memory_.all().data()));
  EXPECT_EQ(open->bytes, 100 * kKiB);
  EXPECT_FALSE(wire_.memory().writable_for(near_->pair().number(), advert.key)) << "another pair";
  EXPECT_EQ(send(100 * kKiB), 100 * kKiB);
  wire_.run();
  EXPECT_EQ(take(100 * kKiB), 100 * kKiB);
  EXPECT_FALSE(far_->flushed()) << "the peer can still write";
  wire_.run();
  EXPECT_TRUE(far_->flushed());
  EXPECT_FALSE(wire_.memory().writable_for(far, advert.key)) << "the destination is full";
}

TEST_F(Steps, AdvertiseNoShortDestinations) {
  EXPECT_EQ(take(kLeastDirect - 1), 0U);
  wire_.run();
  near_->progress();
  EXPECT_EQ(near_->received(Kind::advert), 0);
  EXPECT_EQ(take(kLeastDirect), 0U);
  wire_.run();
  near_->progress();
  EXPECT_EQ(near_->received(Kind::advert), 1);
}

TEST_F(Steps, FlushOnlyAfterWritesComplete) {
  EXPECT_EQ(send_copied(100 * kKiB), 100 * kKiB);
  EXPECT_TRUE(near_->flushed()) << "it has been copied";
  EXPECT_EQ(send(100 * kKiB), 100 * kKiB);
  EXPECT_FALSE(near_->flushed());
  wire_.deliver(near_->pair().number());
  EXPECT_FALSE(near_->flushed()) << "the device may retransmit it";
  wire_.run();
  EXPECT_TRUE(near_->flushed());
  EXPECT_EQ(send(50 * kKiB), 50 * kKiB);
  EXPECT_FALSE(near_->flushed());
  near_->pair().cut();
  near_->sending().abandon();
  EXPECT_TRUE(near_->sending().flushed());
}

TEST_F(Steps, AcceptAtMostWhatRingHolds) {
  EXPECT_EQ(near_->sending().room(), kRingBytes);
  EXPECT_EQ(send(200 * kKiB), 200 * kKiB);
  EXPECT_EQ(near_->sending().room(), 56 * kKiB);
  EXPECT_EQ(send(200 * kKiB), 56 * kKiB);
  EXPECT_EQ(near_->sending().room(), 0U);
  wire_.run();
  EXPECT_EQ(send(1), 0U);
  const auto view = far_->lend(kRingBytes);
  EXPECT_EQ(view.size(), kRingBytes);
  EXPECT_TRUE(std::equal(view.begin(), view.end(), near_memory_.all().begin()));
  far_->release(kCreditBytes);
  wire_.run();
  EXPECT_EQ(send(200 * kKiB), kCreditBytes);
}

TEST_F(Steps, RefuseOtherReadsDuringAdvertisedDestination) {
  EXPECT_EQ(take(100 * kKiB), 0U);
  EXPECT_EQ(error_of(hcclInternalError, [&] { static_cast<void>(far_->lend(1)); }),
            "a stream is read while an advertised destination is not full; report this");
  wire_.run();
  EXPECT_EQ(send(10 * kKiB), 10 * kKiB);
  wire_.run();
  far_->progress();
  EXPECT_EQ(error_of(hcclInternalError,
                     [&] {
                       static_cast<void>(
                           far_->receiving().take(far_memory_.all().subspan(1, 100 * kKiB)));
                     }),
            "a stream is read into a buffer that was not advertised; report this");
}

TEST_F(Steps, RefuseImpossibleMessages) {
  const auto arrives = [&](Kind kind, std::uint32_t bytes, std::uint32_t seen = 0) {
    return far_->receiving().arrive({kind, bytes, seen});
  };
  EXPECT_FALSE(arrives(Kind::data, kRingBytes + 1));
  EXPECT_TRUE(arrives(Kind::data, kRingBytes));
  EXPECT_FALSE(arrives(Kind::data, 1)) << "the ring is full";
  EXPECT_FALSE(arrives(Kind::direct, 1)) << "no destination is advertised";
  EXPECT_FALSE(near_->sending().credit({Kind::credit, 1, 0}));
  EXPECT_FALSE(near_->sending().credit({Kind::credit, 0, 1}));
}

TEST_F(Steps, RefuseCountsOfUnsentAdverts) {
  const auto arrives = [&](std::uint32_t seen) {
    return far_->receiving().arrive({Kind::data, 1, seen});
  };
  EXPECT_TRUE(arrives(0));
  EXPECT_FALSE(arrives(1));
  EXPECT_FALSE(arrives(Immediate::kMaxMessages - kMaxAdverts));
}

}  // namespace
}  // namespace hccl::verbs
