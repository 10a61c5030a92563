// SPDX-License-Identifier: Apache-2.0
// The command loop of a driver: rank 0 reads commands, all ranks run them together, and rank 0
// answers. Between commands every rank sleeps in the kernel, so that an idle driver does not
// disturb the other drivers.
#pragma once

#include "command.h"

#include <array>
#include <cstdint>
#include <string>

#include <pthread.h>
#include <semaphore.h>

namespace peers {

inline constexpr int kMaxRanks = 64;

// Memory that all ranks of a driver share. The members must be plain data or process-shared
// primitives.
struct CommandBoard {
  int ranks = 0;
  pthread_barrier_t barrier{};
  std::array<sem_t, kMaxRanks> wake{};  // one per rank; posted for a new command and at the end
  Command command;
  bool finished = false;
  std::array<std::int64_t, kMaxRanks> start_ns{};
  std::array<std::int64_t, kMaxRanks> end_ns{};
  std::array<std::uint64_t, kMaxRanks> wrong{};
};

// Initialises the board. Call it once, before any rank uses the board: in the process that starts
// the ranks, or on one rank. Throws std::runtime_error.
void initialise(CommandBoard& board, int ranks);

// One rank of the library that the driver measures. On failure, implementations throw a
// std::exception, which ends the driver. All ranks must call each method.
class Engine {
 public:
  Engine() = default;
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Allocates and touches buffers, sets inputs, and selects the variant.
  virtual void prepare(const Command& command) = 0;
  // Makes `iterations` calls. Blocks until all are complete.
  virtual void run(const Command& command, std::uint64_t iterations) = 0;
  // Makes one call with known inputs into poisoned outputs. Returns the number of wrong elements
  // that this rank found.
  virtual std::uint64_t verify(const Command& command) = 0;
};

// Serves commands from standard input until end of file. On rank 0, returns the number of wrong
// elements that all verify commands found on all ranks; on other ranks, returns 0. `title` names
// the driver in the greeting line.
std::uint64_t serve(CommandBoard& board, int rank, Engine& engine, const std::string& title);

}  // namespace peers
