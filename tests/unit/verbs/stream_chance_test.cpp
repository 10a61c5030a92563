// SPDX-License-Identifier: Apache-2.0
// Tests endpoints and streams over a wire with random delays.

#include "endpoints.h"
#include "ranks.h"
#include "samples.h"
#include "stream_driver.h"
#include "stream_end.h"

#include <poll.h>

namespace hccl::verbs {
namespace {

// Tests sleeping endpoints. An endpoint wakes only when a descriptor of its sleep plan is ready. An
// endpoint with work to do must not stay asleep.

using hccl::test::scaled;
using hccl::test::test_seed;
using test::EndpointEnd;
using test::FakeWire;
using Driver = test::StreamDriver<EndpointEnd>;

// A program with one stream. It sleeps as a thread does in WaitSet::wait().
class Sleeper {
 public:
  Sleeper(EndpointEnd& end, Driver& driver, std::uint64_t seed)
      : end_(end), driver_(driver), random_(seed) {}

  // Sends or receives some bytes, or falls asleep. Returns false if the program stays asleep or is
  // done.
  bool act() {
    if (driver_.done() || (asleep_ && !is_woken())) return false;
    if (std::exchange(asleep_, false)) end_.endpoint().end_sleep();
    const bool sends = random_() % 2 == 0;
    const bool content = sends ? driver_.send_some() : driver_.receive_some();
    if (content || random_() % 2 == 0) return true;
    asleep_ = falls_asleep();
    return true;
  }
  [[nodiscard]] bool is_asleep() const { return asleep_; }
  [[nodiscard]] int sleeps() const { return sleeps_; }

 private:
  [[nodiscard]] bool falls_asleep() {
    // The program must take and send all that it can before it sleeps. Otherwise both ends might
    // wait for room forever.
    const bool wants_more = !driver_.has_received_all();
    if (wants_more && driver_.receive_some()) return false;
    const bool wants_room = !driver_.has_sent_all();
    if (wants_room && driver_.send_some()) return false;
    plan_.descriptors.clear();
    const transport::Interest interest{wants_more, wants_room && !driver_.needs_flush(),
                                       driver_.needs_flush()};
    if (!end_.endpoint().begin_sleep(interest, plan_)) return false;
    ++sleeps_;
    return true;
  }
  [[nodiscard]] bool is_woken() {
    return ::poll(plan_.descriptors.data(), plan_.descriptors.size(), 0) > 0;
  }

  EndpointEnd& end_;
  Driver& driver_;
  std::mt19937_64 random_;
  transport::SleepPlan plan_;
  bool asleep_ = false;
  int sleeps_ = 0;
};

TEST(EndpointSleep, EndsWhenWorkArrives) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "HCCL_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto total = static_cast<std::uint64_t>(scaled(60)) << 20;
  FakeWire wire(seed);
  wire.random_delays = true;
  {
    test::SocketPair sockets;
    EndpointEnd near(wire, 0, std::move(sockets.first), 3 * RegistrationCache::kGranuleBytes);
    EndpointEnd far(wire, 1, std::move(sockets.second), 3 * RegistrationCache::kGranuleBytes);
    Driver near_driver(near, seed, 1, 2, total);
    Driver far_driver(far, seed + 1, 2, 1, total);
    near.cache().add_region(near_driver.memory().region());
    far.cache().add_region(far_driver.memory().region());
    Sleeper first(near, near_driver, seed);
    Sleeper second(far, far_driver, seed + 1);
    while (!(near_driver.done() && far_driver.done()) && !testing::Test::HasFailure()) {
      const auto some = [&] { return random() % 64 == 0 ? random() % 1000 : random() % 4; };
      bool moved = false;
      for (auto i = some(); i > 0; --i) moved = wire.step() || moved;
      for (auto i = some(); i > 0; --i) moved = first.act() || moved;
      for (auto i = some(); i > 0; --i) moved = second.act() || moved;
      ASSERT_TRUE(moved || wire.step() || first.act() || second.act())
          << "both ends sleep forever after " << near_driver.received() << " and "
          << far_driver.received() << " bytes";
      ASSERT_EQ(wire.violations(), std::vector<std::string>{});
    }
    EXPECT_GT(first.sleeps(), 0);
    EXPECT_GT(second.sleeps(), 0);
    wire.prompt = true;  // completes the last writes
    wire.run();
  }
  wire.expect_clean();
}

// Tests streams in both directions between two ends. The wire records a violation if a message
// finds no receive request, or if an end posts more writes than it has send requests.

using hccl::test::scaled;
using hccl::test::test_seed;
using test::FakeWire;
using test::StreamEnd;
using SidesDriver = test::StreamDriver<StreamEnd>;
using Kind = Immediate::Kind;

struct Conditions {
  std::uint64_t budget = 3 * kGranule;
  QueuePair::Depths depths = test::kStreamDepths;
  bool registered = true;
  bool windows = true;
  bool confined = true;
};

class Streams : public testing::Test {
 protected:
  void SetUp() override { wire_.random_delays = true; }
  void TearDown() override { wire_.expect_clean(); }

  // Sends `total` bytes in each direction, and counts the messages of each kind in received_.
  void exchange(const Conditions& conditions, std::uint64_t total) {
    test::FakeDevice& device = wire_.memory().verbs().devices.front();
    device.has_windows = conditions.windows;
    device.confines_windows = conditions.confined;
    StreamEnd near(wire_, 1, conditions.budget, conditions.depths);
    StreamEnd far(wire_, 2, conditions.budget, conditions.depths);
    near.connect_to(far.info());
    far.connect_to(near.info());
    wire_.run();
    SidesDriver near_driver(near, seed_, 1, 2, total);
    SidesDriver far_driver(far, seed_ + 1, 2, 1, total);
    if (conditions.registered) {
      near.cache().add_region(near_driver.memory().region());
      far.cache().add_region(far_driver.memory().region());
    }
    std::uint64_t known = 0;
    int idle = 0;
    while (!(near_driver.done() && far_driver.done()) && !HasFailure()) {
      change_weights();
      for (int i = 0; i < 2000 && !HasFailure(); ++i) {
        step(near, near_driver, 1);
        step(far, far_driver, 4);
        if (weights_.at(0) > random_() % 8) wire_.step();
        ASSERT_EQ(wire_.violations(), std::vector<std::string>{});
      }
      const std::uint64_t moved = near_driver.received() + far_driver.received();
      idle = moved == known ? idle + 1 : 0;
      known = moved;
      ASSERT_LT(idle, 50) << "after " << near_driver.received() << " and " << far_driver.received()
                          << " bytes nothing moves";
    }
    wire_.run();
    // Each call to flushed() handles a bounded number of completions.
    for (int looks = 0; looks < 20 && !(near.flushed() && far.flushed()); ++looks) {
    }
    EXPECT_TRUE(near.flushed() && far.flushed());
    for (std::size_t kind = 0; kind < received_.size(); ++kind)
      received_.at(kind) =
          near.received(static_cast<Kind>(kind)) + far.received(static_cast<Kind>(kind));
  }

  [[nodiscard]] int received(Kind kind) const {
    return received_.at(static_cast<std::size_t>(kind));
  }

  std::uint64_t seed_ = test_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, testing::Message() << "HCCL_TEST_SEED=" << seed_};
  FakeWire wire_{seed_};

 private:
  void change_weights() {
    for (std::size_t& each : weights_) each = std::array{1U, 4U, 8U}.at(random_() % 3);
  }
  void step(StreamEnd& end, SidesDriver& driver, std::size_t first_weight) {
    if (weights_.at(first_weight) > random_() % 8) static_cast<void>(driver.send_some());
    if (weights_.at(first_weight + 1) > random_() % 8) static_cast<void>(driver.receive_some());
    if (weights_.at(first_weight + 2) > random_() % 64) end.progress();
    if (random_() % 500 == 0 && driver.is_quiet())
      end.cache().invalidate({nullptr, random_() % (2 * kGranule), test::ProgramMemory::kFile,
                              random_() % (8 * kGranule)});
  }

  std::mt19937_64 random_{seed_};
  std::array<std::size_t, 7> weights_{};
  std::array<int, 4> received_{};
};

TEST_F(Streams, DeliverEveryByteInOrder) {
  exchange({}, static_cast<std::uint64_t>(scaled(100)) * kMiB);
  EXPECT_GT(received(Kind::data), 0);
  EXPECT_GT(received(Kind::direct), 0);
  EXPECT_GT(received(Kind::advert), 5 * static_cast<int>(kMaxAdverts));
  EXPECT_GT(received(Kind::credit), 0);
}

TEST_F(Streams, UseOnlyRingsWithoutRegisteredMemory) {
  exchange({.registered = false}, static_cast<std::uint64_t>(scaled(30)) * kMiB);
  EXPECT_GT(received(Kind::data), 0);
  EXPECT_EQ(received(Kind::direct), 0);
  EXPECT_EQ(received(Kind::advert), 0);
}

TEST_F(Streams, WorkWithRoomForOneRegistration) {
  exchange({.budget = kGranule}, static_cast<std::uint64_t>(scaled(30)) * kMiB);
  EXPECT_GT(received(Kind::direct), 0);
}

TEST_F(Streams, WorkWithFewSendRequests) {
  QueuePair::Depths depths = test::kStreamDepths;
  // Every eighth of the requests must contain a signaled one, and the reserved ones are not used.
  depths.requests = kReservedRequests + 6;
  exchange({.depths = depths}, static_cast<std::uint64_t>(scaled(30)) * kMiB);
  EXPECT_GT(received(Kind::direct), 0);
}

TEST_F(Streams, WorkWithoutWindows) {
  exchange({.windows = false, .confined = false}, static_cast<std::uint64_t>(scaled(30)) * kMiB);
  EXPECT_GT(received(Kind::direct), 0);
}

TEST_F(Streams, WorkWithoutConfinedWindows) {
  exchange({.confined = false}, static_cast<std::uint64_t>(scaled(30)) * kMiB);
  EXPECT_GT(received(Kind::direct), 0);
}

TEST_F(Streams, WorkWithoutInlineData) {
  wire_.faults.most_inline = 0;
  exchange({}, static_cast<std::uint64_t>(scaled(30)) * kMiB);
  EXPECT_GT(received(Kind::data), 0);
  EXPECT_EQ(received(Kind::advert), 0) << "adverts must be sent inline";
}

}  // namespace
}  // namespace hccl::verbs
