// SPDX-License-Identifier: Apache-2.0
#include "multinode/parts_lookahead.h"

namespace hccl::multinode {

const CollectiveCall* PartsLookahead::next() {
  for (;;) {
    if (++index_ == parts().size()) {
      if (call_ == later_.size() && !fetch_call()) {
        --index_;
        return nullptr;
      }
      ++call_;
      index_ = 0;
    }
    const CallPart part = parts().at(index_);
    if (part.scope == CallPart::Scope::node) {
      current_ = part.call;
      return &current_;
    }
    if (part.scope == CallPart::Scope::copy || part.column == layout_.local_rank()) {
      --index_;
      return nullptr;
    }
  }
}

bool PartsLookahead::fetch_call() {
  // Checks has_next() first, because next() could pass over other work that is queued before the
  // next collective.
  if (has_ended_ || !later_.has_room_for(1) || !ahead_.has_next()) return false;
  const CollectiveCall* const call = ahead_.next();
  if (call == nullptr) return false;
  has_ended_ = true;
  if (!CallParts::can_divide(layout_, *call)) return false;
  const CallParts parts(layout_, *call, number_ + later_.size() + 1);
  has_ended_ = parts.exchanges_data();
  if (!has_ended_) later_.push_back(parts);
  return !has_ended_;
}

}  // namespace hccl::multinode
