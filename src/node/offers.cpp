// SPDX-License-Identifier: Apache-2.0
// Finds ranks that have offered this rank a message for which it has posted no receive.
#include "node/engine.h"

namespace hccl::node {

std::optional<Offer> Engine::find_offer(int first) const {
  for (int step = 0; step < size_; ++step) {
    const int source = (first + step) % size_;
    if (source == rank_) continue;
    const std::uint64_t number = next_receive_[static_cast<std::size_t>(source)];
    const Message& message = mailbox_from(source).message(number);
    // Sequentially consistent, as in Exchange::ready(): a sleeper looks here after it has announced
    // itself. The sender writes there again only when the message is taken.
    if (message.offered.load(std::memory_order_seq_cst) != number + 1) continue;
    const auto type = static_cast<hcclDataType_t>(message.type);
    return Offer{source, message.count * reduce::element_size(type)};
  }
  return std::nullopt;
}

}  // namespace hccl::node
