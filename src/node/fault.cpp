// SPDX-License-Identifier: Apache-2.0
// Raising a fault fails each operation with a compare-and-swap on its lane's state word.
#include "node/fault.h"

#include "base/deadline.h"
#include "base/error.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace hccl::node {

void Fault::raise(hcclResult_t code, std::string_view text) noexcept {
  FaultRecord& record = control_.header().fault;
  std::uint32_t expected = FaultRecord::none;
  if (record.state.compare_exchange_strong(expected, FaultRecord::being_written,
                                           std::memory_order_seq_cst)) {
    record.code = code;
    const std::size_t length = std::min(text.size(), FaultRecord::kTextBytes - 1);
    std::memcpy(record.text, text.data(), length);
    record.text[length] = '\0';
    record.state.store(FaultRecord::readable, std::memory_order_seq_cst);
  }
  for (std::uint32_t rank = 0; rank < control_.header().ranks; ++rank)
    control_.header().records[rank].mail.ring_always();
  const std::uint32_t end = control_.header().lane_end.load(std::memory_order_seq_cst);
  for (std::uint32_t index = 0; index < end; ++index) {
    LaneBlock& lane = control_.lane(index);
    if (lane.key.load(std::memory_order_seq_cst) == 0) continue;
    std::uint32_t state = lane.state.load(std::memory_order_seq_cst);
    while ((state & 3) != LaneBlock::failed &&
           !lane.state.compare_exchange_weak(state, state | LaneBlock::failed,
                                             std::memory_order_seq_cst)) {
    }
    lane.bell.ring_always();
  }
}

void Fault::wait_readable() const {
  // The writer may have been killed between claiming the record and filling it.
  const FaultRecord& record = control_.header().fault;
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(100));
  Waiter waiter(WaitLadder::yielding());
  while (record.state.load(std::memory_order_acquire) == FaultRecord::being_written &&
         !deadline.expired()) {
    static_cast<void>(waiter.poll_again());
  }
}

hcclResult_t Fault::code() const {
  wait_readable();
  const FaultRecord& record = control_.header().fault;
  if (record.state.load(std::memory_order_acquire) != FaultRecord::readable) return hcclSystemError;
  return static_cast<hcclResult_t>(record.code);
}

std::string Fault::text() const {
  wait_readable();
  const FaultRecord& record = control_.header().fault;
  if (record.state.load(std::memory_order_acquire) != FaultRecord::readable) {
    return "a rank failed and was killed while it reported why; look at the other ranks' messages";
  }
  return {record.text, strnlen(record.text, FaultRecord::kTextBytes)};
}

void Fault::throw_error() const { throw Error(code(), text()); }

}  // namespace hccl::node
