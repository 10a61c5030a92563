// SPDX-License-Identifier: Apache-2.0
// The memory floor of a collective: one process holds the buffers of all ranks, and makes only the
// reads and writes that no implementation can avoid. Threads claim this work in tiles.
#pragma once

#include "command.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace peers {

// Memory with all pages faulted in. Begins at cache line `first_line` of a page, modulo the number
// of lines: buffers that all start at the same offset within a page compete for the same sets of
// the L1 cache, which can double the time.
class Buffer {
 public:
  Buffer(std::size_t count, std::size_t first_line);

  [[nodiscard]] float* get() const { return start_; }

 private:
  std::vector<float> memory_;
  float* start_ = nullptr;
};

// All threads share the object. Only one thread may call prepare(), reset() and wrong(), and only
// while no other thread is in work().
class Floor {
 public:
  explicit Floor(int ranks) : ranks_(ranks) {}

  // Lays out the tiles and fills the buffers. If `known_inputs`, the inputs are those that wrong()
  // expects. Command::variant 0, 1, 2: tiles of 16, 64, 256 KiB and cached stores; 3, 4, 5: the
  // same with streaming stores, if every tile starts at a cache line.
  void prepare(const Command& command, bool known_inputs);

  // Claims and runs tiles of `iterations` operations until no tile is left. An operation starts
  // when the previous operation is complete, as on a stream.
  void work(std::uint64_t iterations);

  // Resets the counters. Call it between two rounds of work().
  void reset();

  // Returns the number of wrong elements in all outputs after one operation on known inputs.
  [[nodiscard]] std::uint64_t wrong(const Command& command) const;

 private:
  // Has its own cache line, which avoids false sharing: every thread writes to it.
  struct alignas(64) Counter {
    std::atomic<std::uint64_t> value = 0;
  };

  // A segment has `count` elements. The sum of each element over all sources is written to all
  // destinations.
  struct Segment {
    std::vector<const float*> sources;
    std::vector<float*> destinations;
    std::size_t count = 0;
  };

  void allocate(std::size_t count);
  void fill(const Command& command);
  void add_exchange(const std::vector<Buffer>& in, std::size_t part);
  void make_segments(const Command& command);
  void run_tile(std::uint64_t tile);
  void wait_until_done(std::uint64_t tiles) const;
  [[nodiscard]] bool can_stream() const;
  [[nodiscard]] const std::vector<Buffer>& inputs(const Command& command) const;

  Counter next_;  // number of the next tile to claim
  Counter done_;  // number of tiles finished
  int ranks_;
  std::size_t capacity_ = 0;  // elements in each buffer
  std::size_t tile_ = 0;      // elements
  bool streaming_ = false;
  std::vector<Buffer> send_;
  std::vector<Buffer> recv_;
  std::vector<Segment> segments_;  // all with the same count
  std::uint64_t tiles_per_segment_ = 0;
};

}  // namespace peers
