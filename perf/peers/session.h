// SPDX-License-Identifier: Apache-2.0
// The command loop of a driver: rank 0 reads commands, all ranks run them together, rank 0 answers.
// Between commands every rank sleeps in the kernel, so that an idle driver costs its neighbour
// nothing.
#pragma once

#include "command.h"

#include <array>
#include <cstdint>
#include <string>

#include <pthread.h>
#include <semaphore.h>

namespace peers {

inline constexpr int kMaxRanks = 64;

// Memory that all ranks of a driver share. Plain data and process-shared primitives only.
struct CommandBoard {
  int ranks = 0;
  pthread_barrier_t barrier{};
  std::array<sem_t, kMaxRanks> wake{};  // one for each rank: a new command, or the end
  Command command;
  bool finished = false;
  std::array<std::int64_t, kMaxRanks> start_ns{};
  std::array<std::int64_t, kMaxRanks> end_ns{};
  std::array<std::uint64_t, kMaxRanks> wrong{};
};

// One rank calls it before any other touches the board. Throws std::runtime_error.
void initialise(CommandBoard& board, int ranks);

// One rank of the thing measured. Implementations throw std::exception on failure, which ends the
// driver.
class Engine {
 public:
  Engine() = default;
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Collective: buffers allocated and touched, inputs set, the variant chosen.
  virtual void prepare(const Command& command) = 0;
  // Collective: `iterations` calls, complete on return.
  virtual void run(const Command& command, std::uint64_t iterations) = 0;
  // Collective: one call with known inputs into poisoned outputs; the number of wrong elements at
  // this rank.
  virtual std::uint64_t verify(const Command& command) = 0;
};

// Serves commands from standard input until its end. Returns the number of wrong elements seen by
// all verify commands. `title` names the driver in the greeting line.
std::uint64_t serve(CommandBoard& board, int rank, Engine& engine, const std::string& title);

}  // namespace peers
