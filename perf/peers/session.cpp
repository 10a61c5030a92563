// SPDX-License-Identifier: Apache-2.0
// The command loop: passes a command to all ranks, times the calls from the first start to the last
// end, and answers in JSON.
#include "session.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <iostream>
#include <numeric>
#include <stdexcept>

namespace peers {
namespace {

std::int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void require(int status, const char* what) {
  if (status != 0)
    throw std::runtime_error(std::string("cannot initialise the shared board: ") + what);
}

void wait_for_command(CommandBoard& board, int rank) {
  while (sem_wait(&board.wake[static_cast<std::size_t>(rank)]) != 0 && errno == EINTR) {
  }
}

// Reads the next command. Returns false at end of file. Answers malformed lines with an error and
// skips them.
bool read_command(Command& command) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    try {
      command = parse_command(line);
      return true;
    } catch (const std::exception& error) {
      std::cout << R"({"error":")" << error.what() << R"("})" << std::endl;
    }
  }
  return false;
}

void publish_command(CommandBoard& board) {
  board.finished = !read_command(board.command);
  for (int rank = 1; rank < board.ranks; ++rank)
    sem_post(&board.wake[static_cast<std::size_t>(rank)]);
}

void measure(CommandBoard& board, std::size_t rank, Engine& engine, const Command& command) {
  engine.prepare(command);
  pthread_barrier_wait(&board.barrier);
  if (command.warmup > 0) engine.run(command, command.warmup);
  pthread_barrier_wait(&board.barrier);
  board.start_ns[rank] = now_ns();
  engine.run(command, command.iterations);
  board.end_ns[rank] = now_ns();
}

void answer(const CommandBoard& board, const Command& command, std::uint64_t wrong) {
  const auto ranks = static_cast<std::ptrdiff_t>(board.ranks);
  std::cout << R"({"collective":")" << collective_name(command.collective) << R"(","bytes":)"
            << command.bytes << R"(,"variant":)" << command.variant;
  if (command.verb == Verb::run) {
    const auto first = *std::min_element(board.start_ns.begin(), board.start_ns.begin() + ranks);
    const auto last = *std::max_element(board.end_ns.begin(), board.end_ns.begin() + ranks);
    std::cout << R"(,"iterations":)" << command.iterations << R"(,"total_ns":)" << (last - first);
  } else {
    std::cout << R"(,"wrong":)" << wrong;
  }
  std::cout << "}" << std::endl;
}

}  // namespace

void initialise(CommandBoard& board, int ranks) {
  if (ranks < 1 || ranks > kMaxRanks)
    throw std::runtime_error("between 1 and " + std::to_string(kMaxRanks) + " ranks are supported");
  board.ranks = ranks;
  pthread_barrierattr_t shared;
  require(pthread_barrierattr_init(&shared), "barrier attributes");
  require(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED), "barrier sharing");
  require(pthread_barrier_init(&board.barrier, &shared, static_cast<unsigned>(ranks)), "barrier");
  pthread_barrierattr_destroy(&shared);
  for (sem_t& wake : board.wake) require(sem_init(&wake, 1, 0), "semaphore");
}

std::uint64_t serve(CommandBoard& board, int rank, Engine& engine, const std::string& title) {
  const auto own = static_cast<std::size_t>(rank);
  std::uint64_t wrong = 0;
  pthread_barrier_wait(&board.barrier);
  if (rank == 0)
    std::cout << R"({"ready":")" << title << R"(","ranks":)" << board.ranks << "}" << std::endl;
  for (;;) {
    if (rank == 0)
      publish_command(board);
    else
      wait_for_command(board, rank);
    if (board.finished) return wrong;
    const Command command = board.command;
    if (command.verb == Verb::verify)
      board.wrong[own] = engine.verify(command);
    else
      measure(board, own, engine, command);
    pthread_barrier_wait(&board.barrier);
    if (rank == 0) {
      const auto ranks = static_cast<std::ptrdiff_t>(board.ranks);
      const auto sum =
          std::accumulate(board.wrong.begin(), board.wrong.begin() + ranks, std::uint64_t{0});
      answer(board, command, sum);
      wrong += command.verb == Verb::verify ? sum : 0;
    }
  }
}

}  // namespace peers
