// SPDX-License-Identifier: Apache-2.0
// Runs a function as N ranks, which are processes or threads of one process. A failure or a hang of
// a rank becomes a text in the test program. No rank outlives the run.
#pragma once

#include "board.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace hccl::test {

// The arguments of the function that a rank runs.
struct World {
  int rank = 0;
  int size = 1;
  bool threads = false;  // the ranks are threads of one process
  Board* board = nullptr;
  int output = -1;    // a pipe to the test program
  int lifeline = -1;  // at end of file once the test program has finished this run

  // Sends a text to the test program, which finds it in RankOutcome::reports.
  void report(const std::string& text) const;
};

using RankFunction = std::function<void(World&)>;

struct RankOptions {
  std::vector<std::pair<std::string, std::string>> environment{};
  bool comm_id = false;  // sets HCCL_COMM_ID to a free port instead of passing an id over the board
  int seconds = 60;      // the time after which a rank is killed
  bool capture_stderr = false;
  int victim = -1;          // the rank that is expected to die
  long kill_after_us = -1;  // when the victim is sent SIGKILL; -1: it dies by itself
  // Runs in the test program while the ranks run. The argument is the ids of their processes: one
  // if the ranks are threads.
  std::function<void(const std::vector<pid_t>&)> meanwhile{};
};

struct RankOutcome {
  bool finished = false;  // the function has returned
  std::string failure;    // the text of a failed check, or how the process ended
  int signal = 0;         // the signal that ended the process
  std::vector<std::string> reports;
  std::string stderr_text;  // captured if RankOptions::capture_stderr
};

// Block until all ranks have ended. Threads share one process, and so its outcome.
[[nodiscard]] std::vector<RankOutcome> run_ranks(int size, const RankFunction& function,
                                                 const RankOptions& options = {});
[[nodiscard]] std::vector<RankOutcome> run_ranks_as_threads(int size, const RankFunction& function,
                                                            const RankOptions& options = {});

// Returns all failures, one a line; empty if all ranks but `except` finished.
[[nodiscard]] std::string failures(const std::vector<RankOutcome>& outcomes,
                                   std::optional<int> except = std::nullopt);

// HCCL_TEST_SCALE: the factor by which long tests multiply their work; 1 if unset.
[[nodiscard]] double test_scale();
[[nodiscard]] int scaled(int usual);

// Returns the node of a rank by HCCL_TEST_LAYOUT: a string with a letter for each rank's node,
// repeated as needed, which runs any test on several emulated nodes. Empty if it is unset.
[[nodiscard]] std::string node_of(int rank);

// Returns HCCL_TEST_SEED, or, if that is unset, a seed that differs in every run. Tests print it.
[[nodiscard]] unsigned long long test_seed();

// Returns whether this build has a sanitizer, which reserves address space and slows down the
// program.
[[nodiscard]] constexpr bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

}  // namespace hccl::test
