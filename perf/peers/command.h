// SPDX-License-Identifier: Apache-2.0
// The line protocol between the scripts and the benchmark drivers in this directory. A driver runs
// the calls of one library.
//
//   run    collective=all_reduce bytes=8 iterations=1000 [warmup=10] [batch=1000]
//          [place=in] [mode=latency] [variant=3]
//   verify collective=all_reduce bytes=4096 [place=in] [variant=3]
//
// The driver answers each command with one line of JSON, and exits at end of file. `bytes` is the
// size column of nccl-tests: the whole output of all_gather, the whole input of reduce_scatter, and
// otherwise the size of each buffer. A barrier ignores it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace peers {

enum class Verb : std::uint8_t { run, verify };
enum class Collective : std::uint8_t {
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  reduce,
  all_to_all,
  send_receive,  // every rank sends to the next and receives from the previous one; never in place
  barrier
};

inline constexpr int kCollectives = 8;

// A command. Rank 0 passes commands to the other ranks through shared memory, so this structure
// must be trivially copyable.
struct Command {
  Verb verb = Verb::run;
  Collective collective = Collective::all_reduce;
  std::size_t bytes = 0;
  std::uint64_t iterations = 1;
  std::uint64_t warmup = 0;
  std::uint64_t batch = 0;  // hccl only: calls to queue before each synchronisation; 0: all
  int variant = 0;          // selects an algorithm, tiles or socket buffers, as the driver defines
  bool in_place = false;
  bool latency = false;  // wait for each call before the next one
};

[[nodiscard]] const char* collective_name(Collective collective);

// Throws std::invalid_argument or std::out_of_range if the line is not a valid command.
[[nodiscard]] Command parse_command(const std::string& line);

}  // namespace peers
