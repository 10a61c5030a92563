// SPDX-License-Identifier: Apache-2.0
// Collects the transfers of a step until the step ends.
#include "schedule/builder.h"

#include <algorithm>
#include <utility>

namespace hccl::schedule {

ScheduleBuilder::ScheduleBuilder(const Shape& shape, std::uint32_t block_chunks)
    : rank_(shape.rank) {
  schedule_.block_chunks = block_chunks;
  schedule_.input_chunks = block_chunks * shape.blocks_in_input();
  schedule_.output_chunks = block_chunks * shape.blocks_in_output();
}

void ScheduleBuilder::send(std::int32_t peer, const Span& span) {
  sends_.push_back({peer, Action::store, false, span, {}});
}

void ScheduleBuilder::forward(std::int32_t peer, const Span& span) {
  sends_.push_back({peer, Action::store, true, span, {}});
}

void ScheduleBuilder::receive(std::int32_t peer, const Span& into) {
  receives_.push_back({peer, Action::store, false, into, {}});
}

void ScheduleBuilder::receive_reduce(std::int32_t peer, const Span& into, const Span& operand) {
  receives_.push_back({peer, Action::reduce, false, into, operand});
}

void ScheduleBuilder::copy(const Span& into, const Span& from) {
  receives_.push_back({rank_, Action::store, false, into, from});
}

void ScheduleBuilder::fold(const Span& into, const Span& operand) {
  receives_.push_back({rank_, Action::reduce, false, into, operand});
}

void ScheduleBuilder::end_step() {
  if (sends_.empty() && receives_.empty()) return;
  const Range sends = append(sends_);
  const Range receives = append(receives_);
  schedule_.steps.push_back({sends, receives});
}

Range ScheduleBuilder::append(std::vector<Transfer>& transfers) {
  auto& all = schedule_.transfers;
  const Range range{static_cast<std::uint32_t>(all.size()),
                    static_cast<std::uint32_t>(transfers.size())};
  for (const Transfer& transfer : transfers) {
    if (transfer.span.role == Role::scratch) {
      const std::uint32_t end = transfer.span.slot + transfer.span.chunk_count;
      schedule_.scratch_chunks = std::max(schedule_.scratch_chunks, end);
    }
  }
  all.insert(all.end(), transfers.begin(), transfers.end());
  transfers.clear();
  return range;
}

Schedule ScheduleBuilder::finish() && {
  end_step();
  return std::move(schedule_);
}

}  // namespace hccl::schedule
