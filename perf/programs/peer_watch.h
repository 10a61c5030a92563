// SPDX-License-Identifier: Apache-2.0
// A thread that runs alongside a process's ranks. Ends the process a short time after a sibling has
// failed or the parent has ended, if the process has not ended by then because the library reported
// the failure. Without a supervising parent, ends the process if the run takes longer than -T.
#pragma once

#include "board.h"

#include <thread>

namespace hccl_perf {

class PeerWatch {
 public:
  // Starts the watch for the ranks [first, first + count). `notice` is ChildLinks::notice, or -1
  // without a parent. `timeout` is in seconds; 0 means no limit.
  PeerWatch(Board& board, int first, int count, int notice, double timeout);
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

 private:
  void run();
  void sibling_failed();
  [[noreturn]] void timed_out();

  Board& board_;
  int first_;
  int count_;
  int notice_;
  double timeout_;
  int stop_;  // an eventfd
  std::thread thread_;
};

// Reports on stderr, once per rank, why a rank of this process has failed. If `supervised`, first
// waits briefly for the parent to name a sibling that has failed, and appends the sibling's failure
// unless the message already names that sibling. Then ends the process, so that its peers detect
// the failure.
[[noreturn]] void fail_rank(Board& board, int rank, bool supervised, const std::string& message);

}  // namespace hccl_perf
