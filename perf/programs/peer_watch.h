// SPDX-License-Identifier: Apache-2.0
// Runs beside the ranks of a process: ends it when a sibling has failed and the library has not
// said so, and, where no parent supervises, when the run takes longer than -T.
#pragma once

#include "board.h"

#include <thread>

namespace hccl_perf {

class PeerWatch {
 public:
  // Watches for the ranks [first, first + count). `notice` as in ChildLinks, -1: none; `timeout` in
  // seconds, 0: none.
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
  int stop_;  // eventfd
  std::thread thread_;
};

// Says on stderr why a rank of this process fails, once per rank, with the failure of a sibling if
// there is one that the message does not tell; then ends the process, so that its peers notice.
// Never returns.
[[noreturn]] void fail_rank(Board& board, int rank, bool supervised, const std::string& message);

}  // namespace hccl_perf
