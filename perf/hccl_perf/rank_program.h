// SPDX-License-Identifier: Apache-2.0
// The work of one rank from joining to leaving: a sweep over types, reductions, roots and sizes.
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
  bool board_shared_by_all = false;    // every rank of the run has the same board
  const Baseline* baseline = nullptr;  // for rank 0 with --compare, else null
};

struct RankOutcome {
  std::uint64_t wrong = 0;  // wrong elements of the run, or at least those that this rank has found
  bool slower = false;      // slower than the baseline; only rank 0 knows
};

// Runs the rank to its end. Rank 0 prints the table and writes the files. Throws RunError, or
// UsageError for options that do not fit the number of ranks.
[[nodiscard]] RankOutcome run_rank(const Options& options, const RankPlace& place, Board& board,
                                   const Session::GetId& get_id);

// Throws UsageError if the options name a rank that does not exist, or need an even number of
// ranks.
void require_ranks(const Options& options, int ranks);

// Throws UsageError if the memory of this machine is not enough for `local_ranks` ranks.
void require_memory(const Options& options, int ranks, int local_ranks, bool board_shared_by_all);

// Returns the bytes that the expected results of the largest row take on a board shared by all
// ranks, or 0 if nothing is shared.
[[nodiscard]] std::uint64_t shared_expected_bytes(const Options& options);

}  // namespace hccl_perf
