// SPDX-License-Identifier: Apache-2.0
// Tests, between processes, what every transport guarantees for its streams.
#include "harness.h"

#include <unistd.h>

namespace hccl::test {
namespace {

class Stream : public EveryWay {};

INSTANTIATE_TEST_SUITE_P(All, Stream, testing::ValuesIn(all_ways()), name_of);

TEST_P(Stream, BytesOfAnySizeArriveInOrder) {
  run_pair([](World& world, Endpoint& endpoint) {
    std::uint64_t stream = 0;
    for (const std::size_t size : {1UL, 7UL, 64UL, 4095UL, 65536UL, 1048577UL, 67108864UL}) {
      for (const Taking taking : {Taking::into, Taking::lent}) {
        Mover mover;
        if (world.rank == 0) mover.run({{&endpoint, stream, size}}, {});
        if (world.rank == 1) mover.run({}, {{&endpoint, stream, size, 0, taking}});
        ++stream;
      }
    }
  });
}

TEST_P(Stream, PiecesOfOddSizesCrossEveryWrapAround) {
  run_pair([](World& world, Endpoint& endpoint) {
    for (const std::size_t chop : {3UL, 41UL, 1000UL, 70001UL, 1000003UL}) {
      const std::uint64_t total = std::min<std::uint64_t>(chop * 20'000, 20'000'003);
      Mover mover;
      if (world.rank == 0) mover.run({{&endpoint, chop, total, chop}}, {});
      if (world.rank == 1) mover.run({}, {{&endpoint, chop, total, 2 * chop}});
    }
  });
}

TEST_P(Stream, BothDirectionsAtOnce) {
  run_pair([](World& world, Endpoint& endpoint) {
    const auto own = static_cast<std::uint64_t>(world.rank);
    constexpr std::uint64_t kTotal = 30'000'001;
    Mover().run({{&endpoint, own, kTotal}}, {{&endpoint, 1 - own, kTotal, 100'003}});
    require_equal(endpoint.counters().bytes_sent, kTotal, "bytes sent");
    require_equal(endpoint.counters().bytes_received, kTotal, "bytes received");
    require(endpoint.counters().sends > 0 && endpoint.counters().receives > 0, "calls counted");
  });
}

TEST_P(Stream, AFastSenderIsHeldBack) {
  run_pair([](World& world, Endpoint& endpoint) {
    constexpr std::uint64_t kTotal = std::uint64_t{64} << 20;
    if (world.rank == 1) {
      connect(endpoint);
      world.board->await(0, 1);
      usleep(50'000);  // so that the sender sleeps
      Mover().run({}, {{&endpoint, 0, kTotal}});
      return;
    }
    connect(endpoint);
    Mover mover;
    Sending sending{&endpoint, 0, kTotal};
    WaitSet wait_set;
    const WaitSet::Entry entry{&endpoint, {false, true}};
    do {
      while (mover.send_some(sending)) {
      }
    } while (wait_set.wait({&entry, 1}, Deadline::after(std::chrono::milliseconds(300))) ==
             WaitSet::WakeReason::ready);
    require(sending.done > 0 && sending.done < kTotal, "the sender is held back");
    world.board->counter(0) = 1;
    mover.eager_to_sleep().run({sending}, {});
  });
}

TEST_P(Stream, AFullEndpointDoesNotBlockOthers) {
  run(2, [](World& world) {
    Member member(world, GetParam());
    const auto stuffed = member.open(1 - world.rank, {0, 0});
    const auto open = member.open(1 - world.rank, {0, 1});
    const auto own = static_cast<std::uint64_t>(world.rank);
    constexpr std::uint64_t kTotal = std::uint64_t{40} << 20;
    connect(*stuffed);
    connect(*open);
    Mover mover;
    Sending sending{stuffed.get(), own, kTotal};
    // Fill the endpoint. Neither rank receives from it until the other transfers are complete.
    for (int i = 0; i < 200; ++i) static_cast<void>(mover.send_some(sending));
    mover.run({{open.get(), 10 + own, 5'000'000}}, {{open.get(), 11 - own, 5'000'000}});
    mover.run({sending}, {{stuffed.get(), 1 - own, kTotal}});
  });
}

TEST_P(Stream, ChannelsAndLanesAreIndependent) {
  run(2, [](World& world) {
    Member member(world, GetParam());
    std::vector<std::unique_ptr<Endpoint>> endpoints(12);
    std::vector<Sending> sends;
    std::vector<Receiving> receives;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      // The ranks open the streams in opposite orders.
      const std::size_t at = world.rank == 0 ? i : endpoints.size() - 1 - i;
      const auto number = static_cast<std::uint32_t>(at);
      endpoints[at] = member.open(1 - world.rank, {number / 4, number % 4});
      const std::uint64_t stream = 2 * at;
      const auto own = static_cast<std::uint64_t>(world.rank);
      sends.push_back({endpoints[at].get(), stream + own, 300'000 + at, 9000});
      receives.push_back({endpoints[at].get(), stream + 1 - own, 300'000 + at, 9000});
    }
    Mover().run(sends, receives);
  });
}

TEST_P(Stream, AViewGrowsToAWholeElement) {
  run_pair([](World& world, Endpoint& endpoint) {
    connect(endpoint);
    const std::size_t element = endpoint.view_limit();
    const std::size_t step = element - 4001;  // each view begins within the previous one
    Mover mover;
    if (world.rank == 0) {
      mover.run({{&endpoint, 0, 3}}, {});
      // Sends exactly the bytes that rank 1's views cover.
      mover.run({{&endpoint, 0, 3 + 9 * step + element, 30'001, 3}}, {});
      return;
    }
    mover.run({}, {{&endpoint, 0, 3}});  // makes the views begin at odd addresses
    WaitSet wait_set;
    for (std::size_t i = 0; i < 10; ++i) {
      std::span<const std::byte> view;
      while ((view = endpoint.try_receive(element)).size() < element) {
        const WaitSet::Entry entry{&endpoint, {true, false}};
        require(wait_set.wait({&entry, 1}, Deadline::after(std::chrono::seconds(30))) ==
                    WaitSet::WakeReason::ready,
                "the element becomes complete");
      }
      check_pattern(view, 0, 3 + i * step);
      endpoint.release(step);
    }
  });
}

TEST_P(Stream, ALentViewSurvivesMoreData) {
  run_pair([](World& world, Endpoint& endpoint) {
    connect(endpoint);
    Mover mover;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const std::uint64_t begin = 16 * i;
      if (world.rank == 0) {
        mover.run({{&endpoint, 0, begin + 8, 0, begin}}, {});
        world.board->barrier(0, 2);  // rank 1 holds a view of the first half
        mover.run({{&endpoint, 0, begin + 16, 0, begin + 8}}, {});
        world.board->barrier(0, 2);
        world.board->barrier(0, 2);
        continue;
      }
      std::span<const std::byte> view;
      while (view.size() < 8) view = endpoint.try_receive(8);
      world.board->barrier(0, 2);
      world.board->barrier(0, 2);  // the second half has been sent
      check_pattern(view, 0, begin);
      while (view.size() < 16) view = endpoint.try_receive(16);
      check_pattern(view, 0, begin);
      endpoint.release(16);
      world.board->barrier(0, 2);
    }
  });
}

TEST_P(Stream, NoWakeUpIsLost) {
  run_pair([](World& world, Endpoint& endpoint) {
    const auto own = static_cast<std::uint64_t>(world.rank);
    std::mt19937 random(static_cast<unsigned>(test_seed() + own));
    Mover mover;
    mover.eager_to_sleep();
    const int rounds = scaled(sanitized() ? 2000 : 20'000);
    Sending sending{&endpoint, own, 0, 100};
    Receiving receiving{&endpoint, 1 - own, 0, 100};
    for (int i = 0; i < rounds; ++i) {
      if (random() % 4 == 0) sched_yield();
      if (random() % 64 == 0) usleep(static_cast<useconds_t>(random() % 50));
      sending.total += 8;
      receiving.total += 8;
      mover.run({sending}, {receiving});
      sending.done = sending.total;
      receiving.done = receiving.total;
    }
  });
}

}  // namespace
}  // namespace hccl::test
