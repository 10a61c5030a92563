// SPDX-License-Identifier: Apache-2.0
// Checked runs. A checked run writes the inputs, poisons the outputs, runs the collective once, and
// compares every element of this rank's output with a result computed without the library.
#pragma once

#include "board.h"
#include "expected.h"
#include "rank_exchange.h"
#include "rounding.h"
#include "session.h"
#include "workload.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace hccl_perf {

class Verification {
 public:
  // `shared_by_all` means that every rank of the run uses `board`. Each rank then computes only its
  // part of the expected results that are the same on all ranks.
  Verification(Session& session, RankExchange& exchange, Board& board, bool shared_by_all);

  // Writes the inputs of run number `run`. Poisons the receive region except where it holds an
  // input, and the guard if there is one.
  void prepare(const Cell& cell, std::uint64_t run);

  // Runs the cell once, and compares this rank's output with the expected one. Changed elements of
  // the guard or of an out-of-place input also count as wrong. The caller must have called
  // prepare() with the same arguments.
  [[nodiscard]] Agreement run_checked(const Cell& cell, std::uint64_t run);

 private:
  // Functions that fill or inspect `count` elements, starting at element `first`.
  using Fill = std::function<void(std::uint64_t first, std::size_t count, std::byte* elements)>;
  using Look =
      std::function<void(std::uint64_t first, std::size_t count, const std::byte* elements)>;

  void write_elements(std::uint64_t address, std::size_t size, std::uint64_t count,
                      const Fill& fill);
  void read_elements(std::uint64_t address, std::size_t size, std::uint64_t count,
                     const Look& look);
  void write_input(const Cell& cell, std::uint64_t run);
  void poison(std::uint64_t address, std::uint64_t bytes);
  [[nodiscard]] Expectation expectation(const Cell& cell, std::uint64_t run) const;
  [[nodiscard]] bool shares(const Cell& cell) const;
  void compute_shared_part(const Cell& cell, const Expectation& expected);
  [[nodiscard]] Agreement compare_outputs(const Cell& cell, const Expectation& expected);
  [[nodiscard]] std::uint64_t changed_guards(const Cell& cell);
  [[nodiscard]] std::uint64_t changed_inputs(const Cell& cell, std::uint64_t run);

  Session& session_;
  RankExchange& exchange_;
  Board& board_;
  bool shared_by_all_;
  HostBuffer staging_;
  std::vector<std::byte> reference_;
};

}  // namespace hccl_perf
