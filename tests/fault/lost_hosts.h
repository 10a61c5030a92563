// SPDX-License-Identifier: Apache-2.0
// Ranks that all-reduce until a rank, a host or the network fails, and a check of the error that
// the surviving ranks report.
#pragma once

#include "programs/child.h"
#include "ranks.h"

#include <hccl.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace hccl::test {

// Counts the ranks that have reached each stage, in memory shared with the test program.
class Progress {
 public:
  struct Counts {
    std::atomic<int> reducing{0};  // ranks that have completed an all-reduce and continue
    std::atomic<int> failed{0};
  };

  [[nodiscard]] Counts& counts() const { return *counts_; }
  void await_reducing(int ranks) const { await(counts_->reducing, ranks); }
  void await_failed(int ranks) const { await(counts_->failed, ranks); }

 private:
  static void await(const std::atomic<int>& count, int ranks);

  hccl_perf::Shared<Counts> counts_;
};

// Returns a rank function that all-reduces `count` floats until a call fails, reports the error
// text, and requires that the error is one of `codes`. `move(rank)` moves the process to the rank's
// host.
[[nodiscard]] RankFunction reduces_until_failure(const std::function<void(int)>& move,
                                                 const Progress& progress, std::size_t count,
                                                 const std::vector<hcclResult_t>& codes = {
                                                     hcclSystemError});

// Returns "" if the rank's last report blames one of `ranks`, otherwise that report and the rank's
// failure.
[[nodiscard]] std::string blames_none_of(const RankOutcome& outcome, const std::vector<int>& ranks);

}  // namespace hccl::test
