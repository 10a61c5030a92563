// SPDX-License-Identifier: Apache-2.0
// Runs a function as N ranks, each a process or a thread of one process. If a rank fails or hangs,
// the test program gets a text that says so. No rank outlives the run.
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
  int lifeline = -1;  // reaches end of file once all ranks or the test program have ended

  // Sends a text to the test program, which finds it in RankOutcome::reports.
  void report(const std::string& text) const;
};

using RankFunction = std::function<void(World&)>;

struct RankOptions {
  std::vector<std::pair<std::string, std::string>> environment{};
  bool comm_id = false;  // sets HCCL_COMM_ID to a free loopback address
  int seconds = 60;      // a rank that runs longer is killed; sanitizer builds allow 5 times this
  bool capture_stderr = false;
  int victim = -1;          // the rank that is expected to die
  long kill_after_us = -1;  // delay before the victim gets SIGKILL; -1: the test itself ends it
  // Called in a thread of the test program while the ranks run. The argument holds the process id
  // of each rank, or a single id if the ranks are threads.
  std::function<void(const std::vector<pid_t>&)> meanwhile{};
};

struct RankOutcome {
  bool finished = false;  // whether the function has returned
  std::string failure;    // the text of a failed check, or how the process ended
  int signal = 0;         // the signal that ended the process
  std::vector<std::string> reports;
  std::string stderr_text;  // captured if RankOptions::capture_stderr
};

// Run `function` as `size` ranks. Block until all ranks have ended. If the ranks are threads and
// their process fails, every rank without a failure of its own gets the signal or the exit status
// of that process as its failure.
[[nodiscard]] std::vector<RankOutcome> run_ranks(int size, const RankFunction& function,
                                                 const RankOptions& options = {});
[[nodiscard]] std::vector<RankOutcome> run_ranks_as_threads(int size, const RankFunction& function,
                                                            const RankOptions& options = {});

// Returns, for each rank that failed or did not finish, a line with the failure and the rank's
// captured stderr. Skips rank `except`.
[[nodiscard]] std::string failures(const std::vector<RankOutcome>& outcomes,
                                   std::optional<int> except = std::nullopt);

// Long tests multiply their work by the factor HCCL_TEST_SCALE. test_scale() returns the factor, or
// 1 if the variable is unset or not a positive number. scaled() multiplies `usual`, a test's usual
// amount of work, by the factor, and divides it by 5 in a sanitizer build. It returns at least 1.
[[nodiscard]] double test_scale();
[[nodiscard]] int scaled(int usual);

// Returns a text that identifies the node of a rank, or an empty string if HCCL_TEST_LAYOUT is
// unset. HCCL_TEST_LAYOUT runs any test on several emulated nodes: letter n names rank n's node. If
// there are more ranks than letters, the letters repeat.
[[nodiscard]] std::string node_of(int rank);

// Returns HCCL_TEST_SEED, or a random seed if the variable is unset. Later calls, and calls in
// ranks, return the same seed.
[[nodiscard]] unsigned long long test_seed();

// Returns a seed that follows from test_seed(), but differs between the ranks of a test.
[[nodiscard]] unsigned long long rank_seed();
// Sets the rank of this process for rank_seed(). run_ranks() calls it.
void set_rank_of_seed(int rank);

// Returns whether this build has AddressSanitizer or ThreadSanitizer, which reserve address space
// and slow down the program.
[[nodiscard]] constexpr bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

}  // namespace hccl::test
