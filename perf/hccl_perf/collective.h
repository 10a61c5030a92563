// SPDX-License-Identifier: Apache-2.0
// The collectives that hccl-perf runs: the counts for each size, the bus bandwidth factors, and the
// calls. For the collectives of nccl-tests, sizes and factors are the same as there.
#pragma once

#include "data_type.h"

#include <hccl.h>

#include <cstdint>
#include <string>

namespace hccl_perf {

enum class CollectiveKind {
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  reduce,
  all_to_all,
  send_receive,  // each rank sends to the next one
  ping_pong,     // between pairs of ranks, like the next two (see pairs.h)
  bidirectional,
  message_rate,
  barrier
};

// One rank's counts for one size in the sweep.
struct Counts {
  std::uint64_t call = 0;         // the count given to the call, in elements
  std::uint64_t send = 0;         // elements read from the send buffer
  std::uint64_t receive = 0;      // elements written to the receive buffer
  std::uint64_t shown_bytes = 0;  // the value in the table's size column

  [[nodiscard]] bool operator==(const Counts&) const = default;
};

// The ratio of bus bandwidth to algorithm bandwidth: whole + others * (ranks - 1) / ranks.
struct BusFactor {
  double whole;
  double others;
};

struct Collective {
  CollectiveKind kind;
  const char* name;
  bool reduces;
  bool has_root;
  BusFactor bus;
  const char* function;  // the C functions that a call uses, for error texts

  [[nodiscard]] bool moves_data() const { return kind != CollectiveKind::barrier; }
  [[nodiscard]] bool between_pairs() const {
    return kind == CollectiveKind::ping_pong || kind == CollectiveKind::bidirectional ||
           kind == CollectiveKind::message_rate;
  }
  // Returns whether the collective consists of sends and receives, whose buffers must not overlap.
  [[nodiscard]] bool point_to_point() const {
    return kind == CollectiveKind::send_receive || between_pairs();
  }
  [[nodiscard]] bool can_be_in_place() const { return moves_data() && !point_to_point(); }
  // Returns the divisor of a call's time: the number of messages for ping_pong and message_rate,
  // otherwise 1.
  [[nodiscard]] int messages_in_turn() const;
  // Returns the size to measure if the user gives none: nccl-tests' default, or a small message for
  // tests of latency or message rate.
  [[nodiscard]] std::uint64_t default_bytes() const;
  [[nodiscard]] Counts counts(std::uint64_t bytes, const DataType& type, int ranks) const;
  // Returns the ratio of bus bandwidth to algorithm bandwidth.
  [[nodiscard]] double bus_factor(int ranks) const;
};

// Returns the collective with this name or synonym (such as hccl_demo's "all2all"), or null.
[[nodiscard]] const Collective* find_collective(const std::string& name);
// Returns the collective for a program name such as "all_reduce_perf", or null.
[[nodiscard]] const Collective* find_collective_of_program(const std::string& argv0);
// Returns all names as a string such as "all_reduce, broadcast, ...".
[[nodiscard]] std::string collective_names();

// The arguments of a call.
struct Call {
  const Collective* collective = nullptr;
  DataType type{};
  Reduction reduction{};
  int root = -1;
  int rank = 0, ranks = 1;
  std::uint64_t send = 0;  // device addresses
  std::uint64_t receive = 0;
  std::uint64_t count = 0;

  [[nodiscard]] hcclResult_t enqueue(hcclComm_t communicator, void* stream) const;
};

}  // namespace hccl_perf
