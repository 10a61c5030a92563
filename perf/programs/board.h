// SPDX-License-Identifier: Apache-2.0
// Anonymous memory that the parent shares with the ranks that it starts: each rank's progress, the
// report of a failure, and space for expected results that the ranks compute together.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hccl_perf {

enum class Phase : std::uint32_t {
  starting,
  initialising,
  filling,
  checking,
  warming_up,
  timing,
  latency,
  ending
};

[[nodiscard]] const char* phase_name(Phase phase);

// One rank's progress, which the supervisor reads.
struct alignas(64) RankRecord {
  std::atomic<int> pid{0};
  std::atomic<Phase> phase{Phase::starting};
  std::atomic<std::uint64_t> row_bytes{0};
  std::atomic<std::uint64_t> calls{0};  // collectives queued so far
  std::atomic<bool> reported{false};    // the rank must not report a failure any more
  std::atomic<bool> finished{
      false};  // the rank has completed its run, although its data may have been wrong
};

class Board {
 public:
  // Creates a board for `ranks` ranks with space for `expected_bytes` of expected results. Pages
  // are allocated on first use. Throws RunError if there is not enough memory.
  Board(int ranks, std::size_t expected_bytes);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] RankRecord& record(int rank) const { return records_[rank]; }
  [[nodiscard]] std::byte* expected() const { return expected_; }
  [[nodiscard]] std::size_t expected_bytes() const { return expected_bytes_; }

  // Stores the first failure of the run. Later failures are ignored.
  void publish_failure(const std::string& failure);
  // Returns the first failure, or an empty string if there is none.
  [[nodiscard]] std::string failure() const;

  // Returns a string such as "rank 3 (pid 123) timing 1 MiB, 42 calls queued". It contains
  // "stopped" if the process is stopped.
  [[nodiscard]] std::string describe(int rank) const;

 private:
  struct Notice;

  int ranks_;
  std::size_t expected_bytes_;
  std::size_t mapped_bytes_;
  std::byte* base_ = nullptr;
  Notice* notice_ = nullptr;
  RankRecord* records_ = nullptr;
  std::byte* expected_ = nullptr;
};

}  // namespace hccl_perf
