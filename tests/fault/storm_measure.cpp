// SPDX-License-Identifier: Apache-2.0
// Measures how long eight processes take to initialise a communicator: alone, while unknown peers
// flood another process, and while they flood the root server's port. Prints the medians and their
// ratios to the time alone. This is not a test, because times depend on the machine.
#include "bootstrap/pending_connections.h"
#include "bootstrap/unique_id.h"
#include "check.h"
#include "children.h"
#include "session.h"
#include "storm.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRanks = 8;
constexpr int kSilent = 200;
constexpr int kMalformed = 10'000;
constexpr int kStep = 100;
constexpr int kSeconds = 120;

// With `elsewhere`, the flood goes to an unrelated process that accepts and closes connections.
// This shows how much time the flood costs merely by keeping a core busy.
enum class Weather { calm, elsewhere, storm };

// Indices of the board's counters.
constexpr int kStarted = 0;
constexpr int kOver = 1;

FileDescriptor listener_elsewhere() {
  Address loopback;
  loopback.bytes = {127, 0, 0, 1};
  FileDescriptor listener = bootstrap::listen_on(loopback);
  require(listener.valid(), "a listening socket");
  return listener;
}

hcclUniqueId with_address_of(const FileDescriptor& listener, const hcclUniqueId& id) {
  bootstrap::UniqueId other = bootstrap::decode(id);
  other.addresses = {local_address(listener.get())};
  return bootstrap::encode(other);
}

pid_t serve_in_child(const FileDescriptor& listener) {
  const int own = dup(listener.get());  // a descriptor that the forked child does not close
  const pid_t child = start_child([&]() -> int {
    while (true) {
      pollfd wanted{own, POLLIN, 0};
      poll(&wanted, 1, -1);
      const int socket = accept4(own, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket >= 0) close(socket);
    }
  });
  close(own);
  return child;
}

void attack_server(World& world, Weather weather) {
  const hcclUniqueId id = world.board->await_id(0);
  if (weather == Weather::calm) {
    world.board->counter(kStarted) = 1;
    world.board->counter(kOver) = 1;
    return;
  }
  const bool elsewhere = weather == Weather::elsewhere;
  const FileDescriptor listener = elsewhere ? listener_elsewhere() : FileDescriptor();
  const pid_t server = elsewhere ? serve_in_child(listener) : -1;
  Storm storm(elsewhere ? with_address_of(listener, id) : id, kRanks, 1);
  storm.add_silent(kSilent);
  const auto begin = Clock::now();
  for (int made = 0; made < kMalformed; made += kStep) {
    storm.attack(kStep);
    if (made == 5 * kStep) world.board->counter(kStarted) = 1;
  }
  const std::chrono::duration<double> took = Clock::now() - begin;
  world.report(join("storm ", kMalformed / took.count()));
  world.board->counter(kOver) = 1;
  if (elsewhere) kill(server, SIGKILL);
}

void join_once(World& world, Weather weather) {
  if (world.rank == kRanks) return attack_server(world, weather);
  Session session(world);
  const hcclUniqueId id = share_id(world);
  world.board->await(kStarted, 1);
  world.board->barrier(0, kRanks);
  hcclComm_t communicator = nullptr;
  const auto begin = Clock::now();
  succeed(hcclCommInitRank(&communicator, kRanks, id, world.rank));
  const auto end = Clock::now();
  world.report(
      join("took ", begin.time_since_epoch().count(), ' ', end.time_since_epoch().count()));
  world.board->await(kOver, 1);
  succeed(hcclCommDestroy(communicator));
  session.finish();
}

struct Sample {
  double milliseconds = 0;
  double connections_per_second = 0;
};

Sample measure(Weather weather, bool comm_id) {
  const RankOptions options{
      .environment = {{"LOG_LEVEL_HCL", "6"}}, .comm_id = comm_id, .seconds = kSeconds};
  const auto outcomes = run_ranks(
      kRanks + 1, [weather](World& world) { join_once(world, weather); }, options);
  const std::string failed = failures(outcomes);
  if (!failed.empty()) {
    std::fputs(failed.c_str(), stderr);
    std::exit(1);
  }
  long long first = std::numeric_limits<long long>::max();
  long long last = 0;
  Sample sample;
  for (const RankOutcome& outcome : outcomes) {
    for (const std::string& report : outcome.reports) {
      long long begin = 0;
      long long end = 0;
      if (std::sscanf(report.c_str(), "took %lld %lld", &begin, &end) == 2) {
        first = std::min(first, begin);
        last = std::max(last, end);
      }
      static_cast<void>(std::sscanf(report.c_str(), "storm %lf", &sample.connections_per_second));
    }
  }
  sample.milliseconds = static_cast<double>(last - first) / 1e6;
  return sample;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.at(values.size() / 2);
}

void compare(bool comm_id, int rounds) {
  std::vector<double> calm;
  std::vector<double> elsewhere;
  std::vector<double> storm;
  std::vector<double> rate;
  for (int round = 0; round < rounds; ++round) {
    calm.push_back(measure(Weather::calm, comm_id).milliseconds);
    elsewhere.push_back(measure(Weather::elsewhere, comm_id).milliseconds);
    const Sample sample = measure(Weather::storm, comm_id);
    storm.push_back(sample.milliseconds);
    rate.push_back(sample.connections_per_second);
  }
  std::printf(
      "%-12s alone %6.1f ms; storm elsewhere %6.1f ms, ratio %.2f; storm on the server %6.1f ms "
      "(worst %.1f), ratio %.2f, %.0f connections/s\n",
      comm_id ? "HCCL_COMM_ID" : "unique id", median(calm), median(elsewhere),
      median(elsewhere) / median(calm), median(storm), std::ranges::max(storm),
      median(storm) / median(calm), median(rate));
}

}  // namespace
}  // namespace hccl::test

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  for (const bool comm_id : {false, true}) hccl::test::compare(comm_id, rounds);
}
