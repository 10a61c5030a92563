// SPDX-License-Identifier: Apache-2.0
// Tests peers that die, close their endpoint or stop, links that are cut, and waits that another
// thread or a deadline ends.
#include "base/address.h"
#include "harness.h"

#include <filesystem>
#include <thread>

#include <linux/filter.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hccl::test {
namespace {

class Loss : public EveryWay {};

INSTANTIATE_TEST_SUITE_P(All, Loss, testing::ValuesIn(all_ways()), name_of);

// Kills rank 1 while rank 0 runs `survivor`. Returns the outcomes, with `survivor`'s reports.
std::vector<RankOutcome> run_until_killed(const std::function<void(World&, Endpoint&)>& survivor) {
  const RankOptions options{.victim = 1};
  const auto outcomes = run_ranks(
      2,
      [&](World& world) {
        Member member(world, Loss::GetParam());
        const auto endpoint = member.open(1 - world.rank);
        connect(*endpoint);
        world.board->barrier(0, 2);
        if (world.rank == 0) return survivor(world, *endpoint);
        usleep(50'000);  // must work whether or not rank 0 is asleep by now
        raise(SIGKILL);
      },
      options);
  EXPECT_EQ(failures(outcomes, 1), "");
  EXPECT_EQ(outcomes[1].signal, SIGKILL);
  return outcomes;
}

TEST_P(Loss, ASleepingWaiterDetectsAKilledPeer) {
  const auto outcomes = run_until_killed([](World& world, Endpoint& endpoint) {
    const auto start = std::chrono::steady_clock::now();
    world.report(loss_of(endpoint));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    world.report(join("noticed after ", took.count(), " s"));
    // Later calls must throw again.
    static_cast<void>(loss_in([&] { static_cast<void>(endpoint.try_receive(1)); }));
    const std::vector<std::byte> bytes(100);
    static_cast<void>(loss_in([&] { static_cast<void>(endpoint.try_send(bytes)); }));
  });
  ASSERT_EQ(outcomes[0].reports.size(), 2U);
  EXPECT_TRUE(contains(outcomes[0].reports[0], "rank 0 has lost rank 1")) << outcomes[0].reports[0];
  std::printf("%s; %s\n", outcomes[0].reports[0].c_str(), outcomes[0].reports[1].c_str());
}

TEST_P(Loss, PollingDetectsAKilledPeer) {
  run_until_killed([](World&, Endpoint& endpoint) {
    static_cast<void>(loss_in([&] { static_cast<void>(endpoint.try_receive(8)); }));
  });
}

// Over shared memory, an endpoint must detect the death of the peer's process even if a child keeps
// that process's sockets open. Over TCP, the connection then stays open, so that only bootstrap can
// detect the death.
TEST(LossInSharedMemory, AChildThatHoldsSocketsDoesNotHideADeath) {
  const RankOptions options{.victim = 1};
  const auto outcomes = run_ranks(
      2,
      [](World& world) {
        Member member(world, {"shm", "shm"});
        const auto endpoint = member.open(1 - world.rank);
        connect(*endpoint);
        world.board->barrier(0, 2);
        if (world.rank == 0) {
          const std::string loss = loss_of(*endpoint);
          return require(contains(loss, "the process has ended"), loss);
        }
        if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) != 0) raise(SIGKILL);  // without fork handlers
        char byte = 0;
        while (read(world.lifeline, &byte, 1) > 0) {
        }
        _exit(0);
      },
      options);
  EXPECT_EQ(failures(outcomes, 1), "");
}

TEST_P(Loss, ABlockedSenderDetectsAKilledPeer) {
  run_until_killed([](World&, Endpoint& endpoint) {
    Mover mover;
    static_cast<void>(loss_in([&] { mover.run({{&endpoint, 0, std::uint64_t{1} << 40}}, {}); }));
  });
}

TEST_P(Loss, APeerThatDiesBeforeItAcceptsIsLost) {
  const RankOptions options{.victim = 1};
  const auto outcomes = run_ranks(
      2,
      [&](World& world) {
        Member member(world, GetParam());
        world.board->barrier(0, 2);
        if (world.rank == 1) raise(SIGKILL);
        const auto endpoint = member.open(1);
        world.report(loss_of(*endpoint));
      },
      options);
  EXPECT_EQ(failures(outcomes, 1), "");
  ASSERT_EQ(outcomes[0].reports.size(), 1U);
  EXPECT_TRUE(contains(outcomes[0].reports[0], "rank 0 cannot reach rank 1 at"))
      << outcomes[0].reports[0];
}

TEST_P(Loss, BytesSentBeforeTheEndArrive) {
  const auto outcomes = run_ranks(2, [](World& world) {
    Member member(world, GetParam());
    auto endpoint = member.open(1 - world.rank);
    constexpr std::uint64_t kTotal = 150'000;
    if (world.rank == 1) {
      Mover().run({{endpoint.get(), 5, kTotal}}, {});
      endpoint.reset();
      world.board->counter(0) = 1;
      world.board->barrier(0, 2);  // the process stays alive
      return;
    }
    connect(*endpoint);
    world.board->await(0, 1);
    usleep(20'000);
    // At the end of the stream, a view that can no longer grow must be returned.
    const auto view = endpoint->try_receive(1000);
    check_pattern(view, 5, 0);
    endpoint->release(view.size());
    Mover().run({}, {{endpoint.get(), 5, kTotal, 7000, Taking::mixed, view.size()}});
    const std::string loss = loss_of(*endpoint);
    require(contains(loss, "closed"), loss);
    world.board->barrier(0, 2);
  });
  EXPECT_EQ(failures(outcomes), "");
}

TEST_P(Loss, AnIncompleteElementIsAnError) {
  const auto outcomes = run_ranks(2, [](World& world) {
    Member member(world, GetParam());
    auto endpoint = member.open(1 - world.rank);
    if (world.rank == 1) return Mover().run({{endpoint.get(), 5, 3}}, {});
    connect(*endpoint);
    WaitSet wait_set;
    static_cast<void>(loss_in([&] {
      require(endpoint->try_receive(4).size() < 4, "the element is incomplete");
      const WaitSet::Entry entry{endpoint.get(), {true, false}};
      static_cast<void>(wait_set.wait({&entry, 1}, Deadline::after(std::chrono::seconds(30))));
    }));
  });
  EXPECT_EQ(failures(outcomes), "");
}

TEST_P(Loss, AStoppedPeerIsNotLost) {
  RankOptions options;
  options.meanwhile = [](const std::vector<pid_t>& pids) {
    usleep(300'000);
    kill(pids[1], SIGSTOP);
    usleep(4'000'000);  // four times the allowed silence of a host
    kill(pids[1], SIGCONT);
  };
  const auto outcomes = run_ranks(
      2,
      [](World& world) {
        transport::ConnectionLimits limits;
        limits.silence = std::chrono::seconds(1);
        Member member(world, GetParam(), limits);
        const auto endpoint = member.open(1 - world.rank);
        connect(*endpoint);
        const auto idle = member.open(1 - world.rank, {0, 1});
        connect(*idle);
        constexpr std::uint64_t kTotal = std::uint64_t{32} << 20;
        if (world.rank == 1) {
          for (int i = 0; i < 10; ++i) usleep(50'000);  // rank 1 is stopped during this time
          Mover().run({}, {{endpoint.get(), 0, kTotal}, {idle.get(), 1, 10}});
        } else {
          Mover().run({{endpoint.get(), 0, kTotal}}, {});
          Mover().run({{idle.get(), 1, 10}}, {});
        }
        world.board->barrier(0, 2);
      },
      options);
  EXPECT_EQ(failures(outcomes), "");
}

TEST_P(Loss, AWaitEndsWhenWokenOrAtItsDeadline) {
  const auto outcomes = run_ranks(2, [](World& world) {
    Member member(world, GetParam());
    const auto endpoint = member.open(1 - world.rank);
    const auto unanswered = member.open(1 - world.rank, {9, 9 + static_cast<unsigned>(world.rank)});
    connect(*endpoint);
    WaitSet wait_set;
    const std::vector<WaitSet::Entry> entries{{endpoint.get(), {true, false}},
                                              {unanswered.get(), {true, false}}};
    const auto outcome_within = [&](Deadline deadline) {
      while (true) {
        const auto outcome = wait_set.wait(entries, deadline);
        if (outcome != WaitSet::WakeReason::ready) return outcome;
        require_equal(unanswered->try_send({}), 0U, "the bytes sent");
      }
    };
    const auto a_moment = [] { return Deadline::after(std::chrono::milliseconds(20)); };
    require(outcome_within(a_moment()) == WaitSet::WakeReason::expired,
            "the deadline ends the wait");
    wait_set.ring();
    wait_set.ring();
    require(outcome_within(Deadline::never()) == WaitSet::WakeReason::rung,
            "woken before the wait");
    require(outcome_within(a_moment()) == WaitSet::WakeReason::expired,
            "several wake-ups count as one");
    std::thread other([&] {
      usleep(20'000);
      wait_set.ring();
    });
    require(outcome_within(Deadline::never()) == WaitSet::WakeReason::rung,
            "woken during the wait");
    other.join();
    // A wake-up must end a wait even if an endpoint is ready.
    world.board->barrier(0, 2);
    require_equal(endpoint->try_send(pattern(1, 0)), 1U, "the bytes sent");
    while (wait_set.wait({entries.data(), 1}, Deadline::never()) != WaitSet::WakeReason::ready) {
    }
    wait_set.ring();
    require(wait_set.wait(entries, Deadline::never()) == WaitSet::WakeReason::rung,
            "woken and ready");
    require(wait_set.wait(entries, Deadline::never()) == WaitSet::WakeReason::ready, "ready alone");
    world.board->barrier(0, 2);
  });
  EXPECT_EQ(failures(outcomes), "");
}

// Makes the kernel drop all packets to this process's connections, as if the cable were unplugged.
void cut_connections() {
  std::array<sock_filter, 1> drop{{{BPF_RET | BPF_K, 0, 0, 0}}};
  const sock_fprog program{static_cast<unsigned short>(drop.size()), drop.data()};
  int cut = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::atoi(entry.path().filename().c_str());
    const Address remote = remote_address(fd);
    if (remote.port == 0) continue;
    require(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0, "a cut");
    ++cut;
  }
  require(cut == 1, "the connection is found");
}

void expect_cut_is_detected(const std::function<void(Endpoint&)>& survivor) {
  const auto outcomes = run_ranks(2, [&](World& world) {
    transport::ConnectionLimits limits;
    limits.silence = std::chrono::seconds(1);
    Member member(world, {"tcp", "tcp"}, limits);
    const auto endpoint = member.open(1 - world.rank);
    connect(*endpoint);
    world.board->barrier(0, 2);
    cut_connections();
    world.board->barrier(0, 2);
    if (world.rank == 0) survivor(*endpoint);
    world.board->barrier(0, 2);
  });
  EXPECT_EQ(failures(outcomes), "");
}

TEST(CutLink, IsDetectedByAWaiter) {
  expect_cut_is_detected([](Endpoint& endpoint) {
    const std::string loss = loss_of(endpoint);
    require(contains(loss, "no answer for too long"), loss);
  });
}

// A sender must detect the cut from missing acknowledgements, because TCP sends no keep-alive
// probes while data is unacknowledged.
TEST(CutLink, IsDetectedByAWaiterWithUnacknowledgedData) {
  expect_cut_is_detected([](Endpoint& endpoint) {
    const auto bytes = pattern(100, 0);
    require_equal(endpoint.try_send(bytes), bytes.size(), "the bytes sent");
    const std::string loss = loss_of(endpoint);
    require(contains(loss, "no answer for too long"), loss);
  });
}

TEST(CutLink, IsDetectedByABlockedSender) {
  expect_cut_is_detected([](Endpoint& endpoint) {
    Mover mover;
    const std::string loss = loss_in([&] {
      mover.run({{&endpoint, 0, std::uint64_t{1} << 40}}, {});
    });
    require(contains(loss, "no answer for too long"), loss);
  });
}

}  // namespace
}  // namespace hccl::test
