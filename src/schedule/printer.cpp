// SPDX-License-Identifier: Apache-2.0
// Writes a rank's schedule as text and as JSON. No name in the JSON needs escaping.
#include "schedule/printer.h"

#include "base/text.h"

#include <array>
#include <sstream>

namespace hccl::schedule {
namespace {

std::string receive_text(const Transfer& transfer, bool local) {
  const bool reduces = transfer.action == Action::reduce;
  const std::string into = text_of(transfer.span);
  if (local && reduces) return text("fold ", text_of(transfer.operand), " into ", into);
  if (local) return text("copy ", text_of(transfer.operand), " to ", into);
  if (!reduces) return text("receive ", into, " from ", transfer.peer);
  const std::string operand =
      transfer.operand == transfer.span ? "" : text(" with ", text_of(transfer.operand));
  return text("reduce ", into, operand, " from ", transfer.peer);
}

std::string span_json(const Span& span) {
  const char* const role = span.role == Role::input    ? "input"
                           : span.role == Role::output ? "output"
                                                       : "scratch";
  const std::string slot = span.role == Role::scratch ? text(",\"slot\":", span.slot) : "";
  return text("{\"role\":\"", role, "\",\"first_chunk\":", span.first_chunk,
              ",\"chunk_count\":", span.chunk_count, slot, "}");
}

std::string transfer_json(const Transfer& transfer, bool receives, bool local) {
  const bool reduces = transfer.action == Action::reduce;
  std::string json = text("{\"peer\":", transfer.peer, ",\"span\":", span_json(transfer.span));
  if (receives) json += text(",\"action\":\"", reduces ? "reduce" : "store", "\"");
  if (transfer.forward) json += ",\"forward\":true";
  if (receives && (reduces || local)) json += text(",\"operand\":", span_json(transfer.operand));
  return json + "}";
}

std::string list_json(std::span<const Transfer> transfers, bool receives, std::int32_t rank) {
  std::string json = "[";
  for (const Transfer& transfer : transfers) {
    if (json.size() > 1) json += ",";
    json += transfer_json(transfer, receives, transfer.peer == rank);
  }
  return json + "]";
}

}  // namespace

std::string text_of(const Span& span) {
  if (span.chunk_count == 0) return "a signal";
  constexpr std::array kNames = {"input", "output", "scratch"};
  const bool in_slot = span.role == Role::scratch;
  const std::uint32_t first = in_slot ? span.slot : span.first_chunk;
  const std::string last = span.chunk_count == 1 ? "" : text("-", first + span.chunk_count - 1);
  return text(kNames.at(static_cast<std::size_t>(span.role)), "[", first, last, "]");
}

std::string text_of(const Shape& shape, const Schedule& schedule) {
  std::ostringstream out;
  out << name_of(shape.collective) << (shape.in_place ? " in place" : "") << ", rank " << shape.rank
      << " of " << shape.rank_count << ", root " << shape.root << ", channel " << shape.channel
      << " of " << shape.channels << ": blocks of " << schedule.block_chunks << " chunks, "
      << schedule.scratch_chunks << " in scratch\n";
  for (std::size_t number = 0; number < schedule.steps.size(); ++number) {
    const Step& step = schedule.steps[number];
    const char* separator = " ";
    out << "step " << number << ":";
    for (const Transfer& send : schedule.sends(step)) {
      out << separator << (send.forward ? "forward " : "send ") << text_of(send.span) << " to "
          << send.peer;
      separator = "; ";
    }
    for (const Transfer& receive : schedule.receives(step)) {
      out << separator << receive_text(receive, receive.peer == shape.rank);
      separator = "; ";
    }
    out << "\n";
  }
  return out.str();
}

std::string json_of(const Shape& shape, const Schedule& schedule) {
  std::string steps;
  for (const Step& step : schedule.steps) {
    if (!steps.empty()) steps += ",";
    steps += text("{\"sends\":", list_json(schedule.sends(step), false, shape.rank),
                  ",\"receives\":", list_json(schedule.receives(step), true, shape.rank), "}");
  }
  return text("{\"collective\":\"", name_of(shape.collective),
              "\",\"in_place\":", shape.in_place ? "true" : "false", ",\"rank\":", shape.rank,
              ",\"rank_count\":", shape.rank_count, ",\"root\":", shape.root,
              ",\"channel\":", shape.channel, ",\"channels\":", shape.channels,
              ",\"pipeline\":", shape.pipeline, ",\"block_chunks\":", schedule.block_chunks,
              ",\"scratch_chunks\":", schedule.scratch_chunks, ",\"steps\":[", steps, "]}");
}

}  // namespace hccl::schedule
