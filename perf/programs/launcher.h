// SPDX-License-Identifier: Apache-2.0
// -g N: starts N child processes and supervises them. The parent does not call the library. If the
// parent ends, the kernel kills the children. If a child fails, the parent notifies the other
// children, and kills those that have not ended 800 ms later.
#pragma once

#include "board.h"
#include "pipe.h"

#include <functional>

namespace hccl_perf {

struct LaunchPlan {
  int processes = 1;
  int threads = 1;     // ranks per process
  double timeout = 0;  // seconds; 0 for no limit
  int first_rank = 0;  // process p runs `threads` ranks, starting with first_rank + p * threads
  int nodes = 1;       // if above 1, each child gets the HCCL_NODE_ID of its block of processes
};

// Returns the node of a process. The `processes` are distributed over `nodes` in consecutive
// blocks, whose sizes differ by at most one.
[[nodiscard]] constexpr int node_of_process(int process, int processes, int nodes) {
  return static_cast<int>(static_cast<long>(process) * nodes / processes);
}

// Returns the first process in the block of `node`.
[[nodiscard]] constexpr int first_process_of_node(int node, int processes, int nodes) {
  return static_cast<int>((static_cast<long>(node) * processes + nodes - 1) / nodes);
}

// A child's number, and the descriptors that it shares with its siblings in addition to the board.
struct ChildLinks {
  int process = 0;
  int notice = -1;     // end of file means that a sibling has failed (see Board::failure()) or the
                       // parent has ended
  Pipe* id = nullptr;  // carries the unique id from process 0 to the others
};

// Runs `child` in each child process, which exits with the result of `child`. Blocks until all
// children have ended. Returns the exit status of the run: 0 if every child exited with 0, 1 if a
// child failed or the time limit passed, 128 + SIGPIPE if the reader of the output has exited,
// otherwise the status of one of the children. Throws RunError if a child cannot be started.
[[nodiscard]] int launch(const LaunchPlan& plan, Board& board,
                         const std::function<int(const ChildLinks&)>& child);

}  // namespace hccl_perf
