// SPDX-License-Identifier: Apache-2.0
// Runs one rank: joins, sweeps over types, reductions, roots and sizes, and leaves.
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
  bool board_shared_by_all = false;    // whether every rank of the run uses this board
  const Baseline* baseline = nullptr;  // for rank 0 with --compare, else null
};

struct RankOutcome {
  std::uint64_t wrong = 0;  // wrong elements on all ranks, as far as this rank knows
  bool slower = false;      // slower than the baseline; set only on rank 0
};

// Runs the rank to its end. Rank 0 prints the table and writes the files. Throws RunError.
[[nodiscard]] RankOutcome run_rank(const Options& options, const RankPlace& place, Board& board,
                                   const Session::GetId& get_id);

// Throws UsageError if the options name a rank that does not exist, or if they require an even
// number of ranks and `ranks` is odd.
void require_ranks(const Options& options, int ranks);

// Throws UsageError if this machine does not have enough memory for `local_ranks` ranks.
void require_memory(const Options& options, int ranks, int local_ranks, bool board_shared_by_all);

// Returns the number of bytes that a board shared by all ranks needs for the expected results of
// the largest row, or 0 if the ranks share none.
[[nodiscard]] std::uint64_t shared_expected_bytes(const Options& options);

}  // namespace hccl_perf
