// SPDX-License-Identifier: Apache-2.0
// Ranks on hosts that all-reduce until one of them, its host or its network fails, and what the
// others must say then.
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

// How many ranks have come how far, for the test program to see.
class Progress {
 public:
  struct Counts {
    std::atomic<int> reducing{0};  // have ended an all-reduce and go on
    std::atomic<int> failed{0};
  };

  [[nodiscard]] Counts& counts() const { return *counts_; }
  void await_reducing(int ranks) const { await(counts_->reducing, ranks); }
  void await_failed(int ranks) const { await(counts_->failed, ranks); }

 private:
  static void await(const std::atomic<int>& count, int ranks);

  hccl_perf::Shared<Counts> counts_;
};

// All-reduces of `count` floats until one fails with one of `codes`; reports the text of the
// failure. `move(rank)` puts the process on its host.
[[nodiscard]] RankFunction reduces_until_failure(const std::function<void(int)>& move,
                                                 const Progress& progress, std::size_t count,
                                                 const std::vector<hcclResult_t>& codes = {
                                                     hcclSystemError});

// The last report and the exit of a rank that blames none of `ranks`; empty if it
// does.
[[nodiscard]] std::string blames_none_of(const RankOutcome& outcome, const std::vector<int>& ranks);

}  // namespace hccl::test
