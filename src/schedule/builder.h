// SPDX-License-Identifier: Apache-2.0
// How algorithms write schedules down.
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
  // Sends on the data that the receives of this step write there.
  void forward(std::int32_t peer, const Span& span);
  void receive(std::int32_t peer, const Span& into);
  // into = what arrives (op) operand
  void receive_reduce(std::int32_t peer, const Span& into, const Span& operand);
  void copy(const Span& into, const Span& from);
  // into = into (op) operand
  void fold(const Span& into, const Span& operand);
  // Makes a step of everything added since the last one; makes none if there is nothing.
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
