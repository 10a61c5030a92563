// SPDX-License-Identifier: Apache-2.0
// Measures how long the last of 64 ranks on two hosts, with a round-trip time of 40 ms between
// them, takes to complete the initialisation of a communicator, in three situations: alone; while
// another user floods another port; and while that user floods the port of HCCL_COMM_ID with
// garbage, and also holds 2,000 connections that send nothing. The last rank joins when the flood
// has made 100,000 connections, and the flood goes on. Prints the medians. This is not a test,
// because times depend on the machine. Run it by hand; its optional arguments are the number of
// rounds and the number of connections.
#include "base/file_descriptor.h"
#include "children.h"
#include "host_network.h"
#include "on_path_relay.h"
#include "ranks.h"
#include "session.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRanks = 64;
constexpr int kServerPort = 29'400;
constexpr int kOtherPort = 29'500;
constexpr int kFlooders = 4;
constexpr int kSilent = 2'000 / kFlooders;  // of each
constexpr std::chrono::milliseconds kOneWay{20};
// How long the last rank waits, so that all others have joined. They cannot report that they have,
// because they wait in hcclCommInitRank().
constexpr std::chrono::seconds kJoinTime{10};

enum class Weather { calm, elsewhere, flood };

// Counts the connections of the flood, in memory that the processes share.
struct Tally {
  std::atomic<long> silent{0};
  std::atomic<long> made{0};
};

// Returns a connection to the port of host 0, or an invalid descriptor.
FileDescriptor connect_to_port(int port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, HostNetwork::address(0).c_str(), &where.sin_addr);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)) != 0)
    socket.reset();
  return socket;
}

[[noreturn]] void flood(int port, Tally& tally) {
  std::vector<FileDescriptor> silent;
  std::array<char, 500> garbage{};
  for (std::size_t i = 0; i < garbage.size(); ++i) garbage[i] = static_cast<char>(i * 7);
  while (true) {
    FileDescriptor socket = connect_to_port(port);
    if (!socket.valid()) {
      usleep(100);
    } else if (silent.size() < kSilent) {
      silent.push_back(std::move(socket));
      ++tally.silent;
    } else {
      ++tally.made;
      // Every other connection begins like a TLS client.
      garbage[0] = tally.made % 2 == 0 ? 22 : 'x';
      garbage[1] = 3;
      static_cast<void>(send(socket.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL));
      const linger at_once{1, 0};  // keeps no state in the kernel
      setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
  }
}

// Starts a process on host `host` that runs `body` as another user.
template <class Body>
pid_t start_on(const HostNetwork& network, int host, const Body& body) {
  return start_child([&]() -> int {
    network.enter(host);
    const rlimit limit{kSilent + 1'000, kSilent + 1'000};
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "enough descriptors");
    constexpr uid_t kUser = OnPathRelay::kUser;
    require(setresuid(kUser, kUser, kUser) == 0, "another user");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    return 0;
  });
}

[[noreturn]] void serve_elsewhere() {
  FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(kOtherPort);
  require(bind(listener.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)) == 0 &&
              listen(listener.get(), SOMAXCONN) == 0,
          "a listening socket");
  while (true) FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

// `least`: the number of connections of the flood before the last rank joins.
void join_once(World& world, const HostNetwork& network, const Tally& tally, long least) {
  network.enter(world.rank * 2 / kRanks);
  unsetenv("HCCL_NODE_ID");
  Session session(world);
  world.board->barrier(0, kRanks);
  if (world.rank == kRanks - 1) {
    std::this_thread::sleep_for(kJoinTime);
    while (tally.made < least) usleep(1000);
  }
  hcclComm_t communicator = nullptr;
  const auto begin = Clock::now();
  succeed(hcclCommInitRank(&communicator, kRanks, hcclUniqueId{}, world.rank));
  const auto end = Clock::now();
  world.report(
      join("took ", begin.time_since_epoch().count(), ' ', end.time_since_epoch().count()));
  world.board->barrier(1, kRanks);
  succeed(hcclCommDestroy(communicator));
  session.finish();
}

struct Sample {
  double milliseconds = 0;
  double connections = 0;
};

Sample measure(Weather weather, long least, Tally& tally, Recording& recording) {
  const HostNetwork network(2);
  const Attack none;
  std::optional<OnPathRelay> relay;
  network.intercept(1, OnPathRelay::kPort, OnPathRelay::kUser);
  relay.emplace(network, 1, none, recording, kOneWay);
  std::vector<pid_t> others;
  tally.silent = tally.made = 0;
  if (weather == Weather::elsewhere) others.push_back(start_on(network, 0, serve_elsewhere));
  if (weather != Weather::calm) {
    const int port = weather == Weather::flood ? kServerPort : kOtherPort;
    for (int i = 0; i < kFlooders; ++i)
      others.push_back(start_on(network, 1, [&] { flood(port, tally); }));
  }
  const RankOptions options{
      .environment = {{"HCCL_COMM_ID", join(HostNetwork::address(0), ':', kServerPort)},
                      {"HCCL_SECRET", "known to all ranks, and to nobody else"},
                      {"HCCL_SOCKET_IFNAME", ""},
                      {"HCCL_DEVICE_COUNT", "64"},
                      {"HCCL_DEBUG", "NONE"}},
      .seconds = 120};
  const auto outcomes = run_ranks(
      kRanks,
      [&](World& world) { join_once(world, network, tally, weather == Weather::calm ? 0 : least); },
      options);
  for (const pid_t other : others) {
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
  }
  if (const std::string failed = failures(outcomes); !failed.empty()) {
    std::fputs(failed.c_str(), stderr);
    std::exit(1);
  }
  long long last_begin = 0;  // when the last rank began
  long long last = 0;
  for (const RankOutcome& outcome : outcomes) {
    for (const std::string& report : outcome.reports) {
      long long begin = 0;
      long long end = 0;
      if (std::sscanf(report.c_str(), "took %lld %lld", &begin, &end) != 2) continue;
      last_begin = std::max(last_begin, begin);
      last = std::max(last, end);
    }
  }
  return {static_cast<double>(last - last_begin) / 1e6,
          static_cast<double>(tally.silent + tally.made)};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.at(values.size() / 2);
}

void compare(int rounds, long least) {
  Tally& tally =
      *new (mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          Tally;
  Recording& recording = *new (mmap(nullptr, sizeof(Recording), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Recording;
  std::array<std::vector<double>, 3> times;
  std::array<double, 3> connections{};
  for (int round = 0; round < rounds; ++round) {
    for (const Weather weather : {Weather::calm, Weather::elsewhere, Weather::flood}) {
      const Sample sample = measure(weather, least, tally, recording);
      times.at(static_cast<std::size_t>(weather)).push_back(sample.milliseconds);
      connections.at(static_cast<std::size_t>(weather)) += sample.connections;
    }
  }
  const double alone = median(times[0]);
  std::printf(
      "alone %.0f ms; flood elsewhere %.0f ms (%.2f, %.0f connections in all); flood on the "
      "server %.0f ms (%.2f, worst %.0f ms, %.0f connections in all)\n",
      alone, median(times[1]), median(times[1]) / alone, connections[1], median(times[2]),
      median(times[2]) / alone, std::ranges::max(times[2]), connections[2]);
}

}  // namespace
}  // namespace hccl::test

int main(int argc, char** argv) {
  hccl::test::compare(argc > 1 ? std::atoi(argv[1]) : 5, argc > 2 ? std::atol(argv[2]) : 100'000);
}
