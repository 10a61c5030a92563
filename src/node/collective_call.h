// SPDX-License-Identifier: Apache-2.0
// A validated request for one collective, as it waits on a stream.
#pragma once

#include <hccl_types.h>

#include <cstdint>
#include <string>

namespace hccl::node {

enum class Collective : std::uint8_t {
  barrier = 1,
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  reduce,
  all_to_all
};

struct CollectiveCall {
  Collective collective = Collective::barrier;
  std::uint8_t type = 0;       // hcclDataType_t
  std::uint8_t operation = 0;  // hcclRedOp_t; hcclOpNone for pure copies
  std::int32_t root = -1;
  std::uint64_t count = 0;  // elements, as the API counts them: of the whole, or of one rank's part
  std::uint64_t send = 0;   // device addresses
  std::uint64_t recv = 0;

  [[nodiscard]] hcclDataType_t data_type() const { return static_cast<hcclDataType_t>(type); }
  [[nodiscard]] hcclRedOp_t reduction() const { return static_cast<hcclRedOp_t>(operation); }
};

// The stream of a call that runs.
class CallsAhead {
 public:
  CallsAhead() = default;
  virtual ~CallsAhead() = default;
  CallsAhead(const CallsAhead&) = delete;
  CallsAhead& operator=(const CallsAhead&) = delete;

  // The calls behind it, in order; null where they end for now or something else stands in between.
  [[nodiscard]] virtual const CollectiveCall* next() = 0;
  // Whether a thread of the program waits for the stream, and so calls nothing else.
  [[nodiscard]] virtual bool attended() const { return false; }
};

// Bytes of the buffers of a rank that sends, and of one that receives, in a call among `ranks`.
[[nodiscard]] std::uint64_t send_bytes(const CollectiveCall& call, int ranks);
[[nodiscard]] std::uint64_t recv_bytes(const CollectiveCall& call, int ranks);

// Whether `rank` does: all but the root only receive a broadcast, and only send to a reduce.
[[nodiscard]] inline bool sends(const CollectiveCall& call, int rank) {
  return call.collective != Collective::broadcast || call.root == rank;
}
[[nodiscard]] inline bool receives(const CollectiveCall& call, int rank) {
  return call.collective != Collective::reduce || call.root == rank;
}

[[nodiscard]] const char* collective_name(Collective collective);

// "all_reduce(1025, float, sum)"
[[nodiscard]] std::string describe(const CollectiveCall& call);

}  // namespace hccl::node
