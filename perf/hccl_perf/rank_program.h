// SPDX-License-Identifier: Apache-2.0
// The work of one rank from joining to leaving: the sweep over types, reductions, roots and sizes.
#pragma once

#include "baseline.h"
#include "board.h"
#include "options.h"
#include "session.h"

#include <cstdint>

namespace hccl_perf {

struct RankPlace {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;
  bool board_shared_by_all = false;    // every rank of the run sees the same board
  const Baseline* baseline = nullptr;  // for rank 0, with --compare
};

struct RankOutcome {
  std::uint64_t wrong = 0;  // elements of the run, and at least those this rank saw itself
  bool slower = false;      // than the baseline; known to rank 0 alone
};

// Runs the rank to its end. Rank 0 prints the table and writes the files. Throws RunError, and
// UsageError for options that only the number of ranks makes wrong.
[[nodiscard]] RankOutcome run_rank(const Options& options, const RankPlace& place, Board& board,
                                   const Session::GetId& get_id);

// Refuses a root that does not exist. Throws UsageError.
void require_ranks(const Options& options, int ranks);

// Refuses sizes for which `local_ranks` ranks have no memory on this machine. Throws UsageError.
void require_memory(const Options& options, int ranks, int local_ranks, bool board_shared_by_all);

// Returns the room that the expected results of the largest row take on a board shared by all
// ranks; 0 if there is nothing to share.
[[nodiscard]] std::uint64_t shared_expected_bytes(const Options& options);

}  // namespace hccl_perf
