// SPDX-License-Identifier: Apache-2.0
// Endpoints that sleep whenever they have nothing to do, and wake only when a descriptor of their
// plan says so: whatever comes when, nobody sleeps on while there is something for him.
#include "endpoints.h"
#include "ranks.h"
#include "stream_driver.h"

#include <poll.h>

namespace hccl::verbs {
namespace {

using hccl::test::scaled;
using hccl::test::test_seed;
using test::EndpointEnd;
using test::FakeWire;
using Driver = test::StreamDriver<EndpointEnd>;

// A program with one stream, as a thread with a wait set has it.
class Sleeper {
 public:
  Sleeper(EndpointEnd& end, Driver& driver, std::uint64_t seed)
      : end_(end), driver_(driver), random_(seed) {}

  // False if it sleeps on.
  bool act() {
    if (driver_.done() || (asleep_ && !is_called())) return false;
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
    // A thread that waits for room alone while bytes have arrived may wait for ever.
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
  [[nodiscard]] bool is_called() {
    return ::poll(plan_.descriptors.data(), plan_.descriptors.size(), 0) > 0;
  }

  EndpointEnd& end_;
  Driver& driver_;
  std::mt19937_64 random_;
  transport::SleepPlan plan_;
  bool asleep_ = false;
  int sleeps_ = 0;
};

TEST(EndpointSleep, EndsWhenThereIsSomethingToDo) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "HCCL_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto total = static_cast<std::uint64_t>(scaled(60)) << 20;
  FakeWire wire(seed);
  wire.moody = true;
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
          << "both sleep for ever after " << near_driver.received() << " and "
          << far_driver.received() << " bytes";
      ASSERT_EQ(wire.violations(), std::vector<std::string>{});
    }
    EXPECT_GT(first.sleeps(), 0);
    EXPECT_GT(second.sleeps(), 0);
    wire.prompt = true;  // for the last writes
    wire.run();
  }
  wire.expect_clean();
}

}  // namespace
}  // namespace hccl::verbs
