// SPDX-License-Identifier: Apache-2.0
// The memory floor: the time that a collective would take if it only read every input byte once and
// wrote every output byte once. The threads of one process claim tiles; there are no streams or
// messages. By default, there is one thread per core.
//   memory_floor RANKS [THREADS]
// `variant` selects the tile and the stores: 0, 1, 2 = 16, 64, 256 KiB cached; 3, 4, 5 = the same,
// streaming.
#include "command.h"
#include "floor.h"
#include "session.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/prctl.h>

namespace peers {
namespace {

class FloorEngine final : public Engine {
 public:
  FloorEngine(Floor& floor, CommandBoard& board, int thread)
      : floor_(floor), board_(board), thread_(thread) {}

  void prepare(const Command& command) override {
    if (thread_ == 0) floor_.prepare(command, false);
  }

  void run(const Command& /*command*/, std::uint64_t iterations) override {
    floor_.work(iterations);
    // All threads must have stopped claiming tiles before the counters are reset.
    pthread_barrier_wait(&board_.barrier);
    if (thread_ == 0) floor_.reset();
    pthread_barrier_wait(&board_.barrier);
  }

  std::uint64_t verify(const Command& command) override {
    if (thread_ == 0) floor_.prepare(command, true);
    pthread_barrier_wait(&board_.barrier);
    run(command, 1);
    return thread_ == 0 ? floor_.wrong(command) : 0;
  }

 private:
  Floor& floor_;
  CommandBoard& board_;
  int thread_;
};

int usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
}

void serve_thread(Floor& floor, CommandBoard& board, int thread) {
  try {
    FloorEngine engine(floor, board, thread);
    serve(board, thread, engine, "memory floor, " + std::to_string(board.ranks) + " threads");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "memory_floor: %s\n", error.what());
    std::_Exit(1);
  }
}

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  const int threads =
      argc > 2 ? std::atoi(argv[2]) : std::min(peers::usable_cores(), peers::kMaxRanks);
  if (ranks < 1 || threads < 1 || threads > peers::kMaxRanks) {
    std::fprintf(
        stderr,
        "usage: memory_floor RANKS [THREADS], with one command per line on standard input\n");
    return 2;
  }
  auto board = std::make_unique<peers::CommandBoard>();
  peers::initialise(*board, threads);
  peers::Floor floor(ranks);
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads; ++thread)
      others.emplace_back([&, thread] { peers::serve_thread(floor, *board, thread); });
    peers::serve_thread(floor, *board, 0);
  }
  return 0;
}
