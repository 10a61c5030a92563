// SPDX-License-Identifier: Apache-2.0
// Records, for each cell, which receive of the current step read it last, and which wrote it last.
#include "proof/hazards.h"

#include "base/text.h"
#include "schedule/printer.h"

namespace hccl::proof {

using schedule::Action;

HazardCheck::HazardCheck(const Shape& shape, const Schedule& schedule)
    : shape_(&shape), schedule_(&schedule) {
  for (const Role memory : {Role::input, Role::output, Role::scratch}) {
    const std::size_t cells = SymbolicMemory::cells(shape, schedule, memory);
    read_[static_cast<std::size_t>(memory)].resize(cells);
    written_[static_cast<std::size_t>(memory)].resize(cells);
  }
}

std::optional<Violation> HazardCheck::verify(std::uint32_t step_number) {
  const Step& step = schedule_->steps[step_number];
  first_of_step_ = step.receives.first;
  std::optional<std::string> reason;
  for (std::uint32_t i = 0; i < step.receives.count && !reason; ++i) {
    const std::uint32_t number = step.receives.first + i;
    const Transfer& transfer = schedule_->transfers[number];
    const bool takes = transfer.action == Action::reduce || transfer.peer == shape_->rank;
    if (takes) reason = read(number, transfer.operand);
    if (!reason) reason = write(number);
  }
  for (const Transfer& transfer : schedule_->sends(step)) {
    if (!reason) reason = send(transfer);
  }
  if (!reason) return std::nullopt;
  return Violation{Property::no_hazard,
                   text("rank ", shape_->rank, ", step ", step_number, ": ", *reason)};
}

const Transfer* HazardCheck::toucher(const Touched& touched, Role memory,
                                     std::uint32_t cell) const {
  const auto& of_memory = touched[static_cast<std::size_t>(memory)];
  if (of_memory.empty() || of_memory[cell] <= first_of_step_) return nullptr;
  return &schedule_->transfers[of_memory[cell] - 1];
}

void HazardCheck::mark(Touched& touched, const Location& where, std::uint32_t transfer) {
  auto& of_memory = touched[static_cast<std::size_t>(where.memory)];
  if (of_memory.empty()) return;
  for (std::uint32_t i = 0; i < where.count; ++i) of_memory[where.first + i] = transfer + 1;
}

std::optional<std::string> HazardCheck::read(std::uint32_t transfer, const Span& span) {
  const Location where = locate(span);
  for (std::uint32_t i = 0; i < where.count; ++i) {
    const Transfer* writer = toucher(written_, where.memory, where.first + i);
    if (writer != nullptr && locate(writer->span) != where)
      return text("reads ", text_of(span), " while ", text_of(writer->span), " is written");
  }
  mark(read_, where, transfer);
  return std::nullopt;
}

std::optional<std::string> HazardCheck::write(std::uint32_t transfer) {
  const Span& span = schedule_->transfers[transfer].span;
  const Location where = locate(span);
  for (std::uint32_t i = 0; i < where.count; ++i) {
    const Transfer* writer = toucher(written_, where.memory, where.first + i);
    const Transfer* reader = toucher(read_, where.memory, where.first + i);
    if (writer != nullptr && locate(writer->span) != where)
      return text("writes ", text_of(span), " while ", text_of(writer->span), " is written");
    if (reader != nullptr && locate(reader->operand) != where)
      return text("writes ", text_of(span), " while ", text_of(reader->operand), " is read");
  }
  mark(written_, where, transfer);
  return std::nullopt;
}

std::optional<std::string> HazardCheck::send(const Transfer& transfer) const {
  const Location where = locate(transfer.span);
  for (std::uint32_t i = 0; i < where.count; ++i) {
    const Transfer* writer = toucher(written_, where.memory, where.first + i);
    if (!transfer.forward && writer != nullptr)
      return text("overwrites ", text_of(writer->span), " while it is sent to rank ",
                  transfer.peer);
    if (transfer.forward && (writer == nullptr || locate(writer->span) != where))
      return text("forwards ", text_of(transfer.span), " to rank ", transfer.peer,
                  ", but no receive of the step writes that span");
  }
  return std::nullopt;
}

}  // namespace hccl::proof
