// SPDX-License-Identifier: Apache-2.0
// Groups the ranks by the text of their call.
#include "node/call_match.h"

#include "base/rank_text.h"
#include "base/text.h"

#include <atomic>
#include <exception>
#include <map>
#include <vector>

namespace hccl::node {
namespace {

using RanksByCall = std::map<std::string, std::vector<int>>;

std::string posted_call(const Slot& slot) {
  CollectiveCall call;
  call.collective = static_cast<Collective>(slot.collective);
  call.type = slot.type;
  call.operation = slot.operation;
  call.root = slot.root;
  call.count = slot.count;
  return describe(call);
}

void append_group(std::string& list, const RanksByCall::value_type& group) {
  list += text(list.empty() ? "" : ", ", rank_list(group.second), ' ', group.first);
}

}  // namespace

bool call_matches(const Slot& slot, const CollectiveCall& call) {
  const CollectiveCall& own = program_call(call);
  return slot.count == own.count && slot.collective == static_cast<std::uint8_t>(own.collective) &&
         slot.type == own.type && slot.operation == own.operation && slot.root == own.root;
}

bool calls_match(const Lane& lane, const CollectiveCall& call, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (!call_matches(lane.slot(rank), call)) return false;
  }
  return true;
}

bool all_use_host_memory(const NodeSegment& node, const CollectiveOperation& op) {
  for (int rank = 0; rank < node.size(); ++rank) {
    const std::uint8_t memory = op.lane.slot(op.number, rank).memory;
    if (!is_on_host(op.call, rank, send_is_staged(memory), recv_is_staged(memory))) return false;
  }
  return true;
}

std::string mismatch_text(const NodeSegment& node, const CollectiveOperation& op) {
  RanksByCall groups;
  for (int rank = 0; rank < node.size(); ++rank)
    groups[posted_call(op.lane.slot(rank))].push_back(node.number_of(rank));
  // Lists the majority last, because readers look for the ranks whose calls differ.
  const RanksByCall::value_type* majority = nullptr;
  for (const auto& group : groups) {
    if (majority == nullptr || group.second.size() > majority->second.size()) majority = &group;
  }
  std::string odd;
  std::string usual;
  for (const auto& group : groups) append_group(&group == majority ? usual : odd, group);
  const std::uint64_t number = op.program_number();
  const std::uint32_t stream = op.lane.ordinal();
  return text("op ", number, " of stream ", stream, ": ", odd, " but ", usual,
              "; every rank must make the same calls in the same order");
}

void raise_mismatch(NodeSegment& node, const CollectiveOperation& op) {
  if (op.observer == nullptr) {
    node.fault().raise(hcclInvalidUsage, mismatch_text(node, op));
    return;
  }
  try {
    op.observer->on_mismatch(mismatch_text(node, op));
  } catch (const std::exception& error) {
    node.fault().raise(hcclInvalidUsage, error.what());  // keeps an earlier fault
  }
}

const Slot* find_slot(const ControlBlock& control, std::uint32_t ordinal, std::uint32_t number,
                      int rank) {
  const std::uint32_t end = control.header().lane_end.load(std::memory_order_seq_cst);
  for (std::uint32_t index = 0; index < end; ++index) {
    if (control.lane(index).key.load(std::memory_order_seq_cst) != ordinal + 1ull) continue;
    const Slot& slot = control.slot(index, number, rank);
    return slot.number.load(std::memory_order_seq_cst) == number ? &slot : nullptr;
  }
  return nullptr;
}

std::string posted_calls_text(const ControlBlock& control, std::uint32_t ordinal,
                              std::uint32_t number) {
  RanksByCall groups;
  for (int rank = 0; rank < static_cast<int>(control.header().ranks); ++rank) {
    if (const Slot* slot = find_slot(control, ordinal, number, rank))
      groups[posted_call(*slot)].push_back(rank);
  }
  std::string list;
  for (const auto& group : groups) append_group(list, group);
  return list;
}

}  // namespace hccl::node
