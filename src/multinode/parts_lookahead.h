// SPDX-License-Identifier: Apache-2.0
// Lets a running part look at the later parts that run in shared memory, in its own call and in the
// calls queued behind that call.
#pragma once

#include "base/inplace_vector.h"
#include "call/lookahead.h"
#include "multinode/call_parts.h"
#include "node/control_block.h"

#include <cstddef>
#include <cstdint>

namespace hccl::multinode {

class PartsLookahead final : public CallLookahead {
 public:
  // `first`: the parts of the running call. `number`: the number of that call on its stream. All
  // arguments must outlive the object.
  PartsLookahead(CallLookahead& ahead, const NodeLayout& layout, const CallParts& first,
                 std::uint64_t number)
      : ahead_(ahead), layout_(layout), first_(first), number_(number) {}

  // Moves to part `index` of the running call; next() then returns the parts after it.
  void move_to(std::uint64_t index) {
    call_ = 0;
    index_ = index;
  }

  // Returns the next part that runs in shared memory. Returns null if there is none, at a copy, and
  // at a part that this rank's column runs, because the parts behind it need data that has not
  // arrived.
  const CollectiveCall* next() override;
  bool has_next() const override { return ahead_.has_next(); }
  bool host_is_waiting() const override { return ahead_.host_is_waiting(); }
  WaitBudget wait_budget() const override { return WaitBudget::unlimited; }

 private:
  // Fetches the next call from the queue. Returns false if there is none or later_ is full, if the
  // call cannot be divided, or if it needs this rank's exchange memory, which the running call may
  // be using.
  [[nodiscard]] bool fetch_call();
  [[nodiscard]] const CallParts& parts() const {
    return call_ == 0 ? first_ : later_.begin()[call_ - 1];
  }

  CallLookahead& ahead_;
  const NodeLayout& layout_;
  const CallParts& first_;
  const std::uint64_t number_;
  InplaceVector<CallParts, node::kMaxAhead> later_;  // the parts of the calls fetched so far
  bool has_ended_ = false;                           // a fetched call could not be added to later_
  std::size_t call_ = 0;                             // 0: the running call
  std::uint64_t index_ = 0;
  CollectiveCall current_;
};

}  // namespace hccl::multinode
