// SPDX-License-Identifier: Apache-2.0
// Runs a function as N ranks, which are processes or threads of one process. A failure or a hang of
// a rank is reported to the test program as a text. No rank outlives the run.
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
  int lifeline = -1;  // reads end of file after the test program has finished this run

  // Sends a text to the test program, which finds it in RankOutcome::reports.
  void report(const std::string& text) const;
};

using RankFunction = std::function<void(World&)>;

struct RankOptions {
  std::vector<std::pair<std::string, std::string>> environment{};
  bool comm_id = false;  // sets HCCL_COMM_ID to a free port instead of passing an id over the board
  int seconds = 60;      // a rank that runs longer is killed; five times as long with a sanitizer
  bool capture_stderr = false;
  int victim = -1;          // the rank that is expected to die
  long kill_after_us = -1;  // when to send the victim SIGKILL; -1: the victim dies by itself
  // Runs in the test program while the ranks run. The argument holds their process ids: a single
  // one if the ranks are threads.
  std::function<void(const std::vector<pid_t>&)> meanwhile{};
};

struct RankOutcome {
  bool finished = false;  // the function has returned
  std::string failure;    // the text of a failed check, or how the process ended
  int signal = 0;         // the signal that ended the process
  std::vector<std::string> reports;
  std::string stderr_text;  // captured if RankOptions::capture_stderr
};

// Block until all ranks have ended. Ranks that are threads share the outcome of their process.
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

// Returns the node of a rank according to HCCL_TEST_LAYOUT, a string with one letter per rank that
// names its node, repeated as needed. The variable runs any test on several emulated nodes. Returns
// an empty string if it is unset.
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
