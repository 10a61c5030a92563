// SPDX-License-Identifier: Apache-2.0
// Ranks that call different things: found before anything is written, told with the odd ranks'
// names.
#include "base/rank_text.h"
#include "base/text.h"
#include "node/operation.h"

#include <map>

namespace hccl::node {
namespace {

CollectiveCall call_in(const Slot& slot) {
  CollectiveCall call;
  call.collective = static_cast<Collective>(slot.collective);
  call.type = slot.type;
  call.operation = slot.operation;
  call.root = slot.root;
  call.count = slot.count;
  return call;
}

}  // namespace

bool Engine::descriptors_agree(const Operation& op) const {
  bool agree = true;
  for (int rank = 0; rank < size_; ++rank) {
    const Slot& slot = op.lane.slot(rank);
    agree &= slot.count == op.call.count;
    agree &= slot.collective == static_cast<std::uint8_t>(op.call.collective);
    agree &= slot.type == op.call.type;
    agree &= slot.operation == op.call.operation;
    agree &= slot.root == op.call.root;
  }
  return agree;
}

const Slot* Engine::find_slot(const StreamPlace& place, int rank) const {
  const std::uint32_t number =
      place.lane != nullptr ? place.lane->number() : segment_.control().header().first_number;
  const std::uint32_t end = segment_.control().header().lane_end.load(std::memory_order_seq_cst);
  for (std::uint32_t index = 0; index < end; ++index) {
    if (segment_.control().lane(index).key.load(std::memory_order_seq_cst) != place.ordinal + 1ull)
      continue;
    const Slot& slot = segment_.control().slot(index, number, rank);
    return slot.number.load(std::memory_order_seq_cst) == number ? &slot : nullptr;
  }
  return nullptr;
}

std::string Engine::calls_text(const StreamPlace& place) const {
  std::map<std::string, std::vector<int>> groups;
  for (int rank = 0; rank < size_; ++rank) {
    if (const Slot* slot = find_slot(place, rank)) groups[describe(call_in(*slot))].push_back(rank);
  }
  std::string all;
  for (const auto& [call, ranks] : groups) {
    all += text(all.empty() ? "" : ", ", rank_list(ranks), ' ', call);
  }
  return all;
}

std::string Engine::mismatch_text(const Operation& op) const {
  std::map<std::string, std::vector<int>> groups;
  for (int rank = 0; rank < size_; ++rank)
    groups[describe(call_in(op.lane.slot(rank)))].push_back(rank);
  // The majority is named last: the odd ranks are the news.
  const std::vector<int>* majority = nullptr;
  for (const auto& [call, ranks] : groups) {
    if (majority == nullptr || ranks.size() > majority->size()) majority = &ranks;
  }
  std::string odd, usual;
  for (const auto& [call, ranks] : groups) {
    const std::string part = text(rank_list(ranks), " ", call);
    if (&ranks == majority) {
      usual = part;
    } else {
      odd += odd.empty() ? part : text(", ", part);
    }
  }
  return text("op ", op.lane.number(), " of stream ", op.lane.ordinal(), ": ", odd, " but ", usual,
              "; every rank must make the same calls in the same order");
}

}  // namespace hccl::node
