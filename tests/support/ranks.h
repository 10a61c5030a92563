// SPDX-License-Identifier: Apache-2.0
// Runs a function as N ranks: as processes, or as threads of one process. A failure or hang in a
// rank becomes text in the test program, and nothing outlives it.
#pragma once

#include "board.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace hccl::test {

// The arguments of a rank.
struct World {
  int rank = 0;
  int size = 1;
  bool threads = false;  // ranks are threads of one process
  Board* board = nullptr;
  int output = -1;    // pipe to the test program
  int lifeline = -1;  // readable (end of file) once the test program is done with this run

  // Sends a text to the test program: RankOutcome::reports.
  void report(const std::string& text) const;
};

using RankFunction = std::function<void(World&)>;

struct RankOptions {
  std::vector<std::pair<std::string, std::string>> environment{};
  bool comm_id = false;  // HCCL_COMM_ID with a port of its own, instead of an id on the board
  int seconds = 60;      // then a rank is killed
  bool capture_stderr = false;
  int victim = -1;          // a rank that is expected to die
  long kill_after_us = -1;  // sent SIGKILL that long after the start; -1: it dies by itself
  // Runs in the test program while the ranks run, with their process ids (the first again and again
  // for threads).
  std::function<void(const std::vector<pid_t>&)> meanwhile{};
};

struct RankOutcome {
  bool finished = false;  // the function returned
  std::string failure;    // of a check, or how the process ended
  int signal = 0;         // that ended it
  std::vector<std::string> reports;
  std::string stderr_text;  // with RankOptions::capture_stderr
};

// With threads, one process runs them all and the outcomes share its end.
[[nodiscard]] std::vector<RankOutcome> run_ranks(int size, const RankFunction& function,
                                                 const RankOptions& options = {});
[[nodiscard]] std::vector<RankOutcome> run_ranks_as_threads(int size, const RankFunction& function,
                                                            const RankOptions& options = {});

// Returns every failure, one line each; empty if all ranks but `except` finished.
[[nodiscard]] std::string failures(const std::vector<RankOutcome>& outcomes,
                                   std::optional<int> except = std::nullopt);

// HCCL_TEST_SCALE: how many times the usual amount of work the long tests do; 1 if unset.
[[nodiscard]] double test_scale();
[[nodiscard]] int scaled(int usual);

// HCCL_TEST_LAYOUT: letters for the nodes of the ranks, again and again if there are more of these;
// puts the ranks of any test on several emulated nodes. Empty if it is unset.
[[nodiscard]] std::string node_of(int rank);

// Returns a seed that differs in every run unless HCCL_TEST_SEED sets it; tests print it.
[[nodiscard]] unsigned long long test_seed();

// Returns whether this build has a sanitizer, which reserves address space and slows everything
// down.
[[nodiscard]] constexpr bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

}  // namespace hccl::test
