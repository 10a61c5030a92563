// SPDX-License-Identifier: Apache-2.0
// Builds schedules step by step, for the algorithms.
#pragma once

#include "schedule/schedule.h"
#include "schedule/shape.h"

namespace hccl::schedule {

[[nodiscard]] constexpr Span input(std::uint32_t first_chunk, std::uint32_t chunk_count = 1) {
  return {Role::input, first_chunk, chunk_count, 0};
}
[[nodiscard]] constexpr Span output(std::uint32_t first_chunk, std::uint32_t chunk_count = 1) {
  return {Role::output, first_chunk, chunk_count, 0};
}
[[nodiscard]] constexpr Span scratch(std::uint32_t slot, std::uint32_t first_chunk,
                                     std::uint32_t chunk_count = 1) {
  return {Role::scratch, first_chunk, chunk_count, slot};
}
inline constexpr Span kSignal{};

class ScheduleBuilder {
 public:
  ScheduleBuilder(const Shape& shape, std::uint32_t block_chunks);

  void send(std::int32_t peer, const Span& span);
  // Sends the data that the receives of this step write to the span.
  void forward(std::int32_t peer, const Span& span);
  void receive(std::int32_t peer, const Span& into);
  // Sets `into` to the arriving data (op) `operand`.
  void receive_reduce(std::int32_t peer, const Span& into, const Span& operand);
  void copy(const Span& into, const Span& from);
  // Sets `into` to `into` (op) `operand`.
  void fold(const Span& into, const Span& operand);
  // Ends the step, which consists of all transfers added since the previous step ended. Does
  // nothing if there are none.
  void end_step();

  [[nodiscard]] Schedule finish() &&;

 private:
  Range append(std::vector<Transfer>& transfers);

  std::int32_t rank_;
  std::vector<Transfer> sends_;
  std::vector<Transfer> receives_;
  Schedule schedule_;
};

}  // namespace hccl::schedule
