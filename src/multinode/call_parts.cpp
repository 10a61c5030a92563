// SPDX-License-Identifier: Apache-2.0
#include "multinode/call_parts.h"

#include "reduce/reduce.h"

#include <algorithm>

namespace hccl::multinode {
namespace {

constexpr std::uint64_t kBarrierParts = 3;
// All-reduces of fewer bytes, and all-gathers with a smaller output, use column 0 only.
constexpr std::uint64_t kLeastBytesForAllColumns = 512 << 10;
// Broadcasts of up to this many bytes are not divided: if undivided, most of them need no agreement
// first (network::StreamConnections::run()).
constexpr std::uint64_t kLeastBroadcastBytes = 1 << 20;
constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint64_t kMostExchangeBytes = 256 << 20;

std::uint64_t divide_up(std::uint64_t count, std::uint64_t by) { return (count + by - 1) / by; }

bool is_divided_by_blocks(const CollectiveCall& call) {
  return call.collective == Collective::all_gather ||
         call.collective == Collective::reduce_scatter || call.traits().exchanges();
}

}  // namespace

// An average of a type that needs a prescale is not divided into parts, because each rank must
// scale its input before the sum.
bool CallParts::can_divide(const NodeLayout& layout, const CollectiveCall& call) {
  if (call.collective == Collective::barrier) return true;
  if (call.count == 0) return false;
  if (call.reduction() == hcclAvg && reduce::needs_prescale(call.data_type())) return false;
  const auto has_column_of_root = [&] {
    return layout.has_column(layout.topology().local_rank(call.root));
  };
  switch (call.collective) {
    case Collective::all_reduce:
      return true;
    case Collective::reduce:
      return has_column_of_root();
    case Collective::broadcast:
      return has_column_of_root() && chunk_bytes(call, layout.ranks()) > kLeastBroadcastBytes;
    default:
      return is_divided_by_blocks(call) && layout.has_contiguous_nodes() &&
             exchange_bytes(layout, call) <= kMostExchangeBytes;
  }
}

std::uint64_t CallParts::exchange_bytes(const NodeLayout& layout, const CollectiveCall& call) {
  const std::uint64_t block = chunk_bytes(call, layout.ranks());
  std::uint64_t bytes = kExchangeBytes;
  if (call.collective == Collective::reduce_scatter)
    bytes = block * static_cast<std::uint64_t>(layout.nodes());
  if (call.traits().exchanges()) bytes = block * static_cast<std::uint64_t>(layout.ranks());
  return std::max(bytes, kExchangeBytes);
}

CallParts::CallParts(const NodeLayout& layout, const CollectiveCall& call, std::uint64_t number)
    : layout_(&layout),
      call_(&call),
      number_(number),
      element_bytes_(std::max<std::uint64_t>(reduce::element_size(call.data_type()), 1)),
      block_elements_(reduce::elements_in(call.data_type(), chunk_bytes(call, layout.ranks()))) {
  const auto nodes = static_cast<std::uint64_t>(layout.nodes());
  switch (call.collective) {
    case Collective::barrier:
      begins_with_barrier_ = true;
      break;
    case Collective::all_reduce:
      slice_call(3, kLeastBytesForAllColumns);
      break;
    case Collective::reduce:
      begins_with_barrier_ = true;
      slice_call(3, kNever);
      break;
    case Collective::broadcast:
      begins_with_barrier_ = true;
      slice_call(2, kNever);
      break;
    case Collective::all_gather:
      if (recv_bytes(call, layout.ranks()) < kLeastBytesForAllColumns) {
        size_ = 3;
        break;
      }
      [[fallthrough]];
    default:
      columns_ = layout.local_ranks();
      begins_with_barrier_ = true;
      size_ = nodes + 1;
  }
  if (begins_with_barrier_) size_ += kBarrierParts;
}

bool CallParts::exchanges_data() const {
  switch (call_->collective) {
    case Collective::barrier:
      return false;
    case Collective::all_reduce:
      return columns_ > 1 || layout_->local_rank() == 0;
    case Collective::reduce:
    case Collective::broadcast:
      return layout_->local_rank() == column_of_root();
    default:
      return true;
  }
}

void CallParts::slice_call(std::uint64_t parts_per_slice,
                           std::uint64_t least_bytes_for_all_columns) {
  parts_per_slice_ = parts_per_slice;
  if (layout_->is_even() && call_->count * element_bytes_ >= least_bytes_for_all_columns)
    columns_ = layout_->local_ranks();
  const auto columns = static_cast<std::uint64_t>(columns_);
  slice_elements_ = kExchangeBytes / element_bytes_ * columns;
  shared_elements_ = columns_ > 1 ? call_->count / columns * columns : 0;
  shared_slices_ = divide_up(shared_elements_, slice_elements_);
  const std::uint64_t others = divide_up(call_->count - shared_elements_, slice_elements_);
  size_ = (shared_slices_ + others) * parts_per_slice_;
}

CallParts::CallSlice CallParts::slice(std::uint64_t number) const {
  const bool is_shared = number < shared_slices_;
  const std::uint64_t begin = is_shared ? 0 : shared_elements_;
  const std::uint64_t end = is_shared ? shared_elements_ : call_->count;
  const std::uint64_t first =
      begin + (is_shared ? number : number - shared_slices_) * slice_elements_;
  return {first, std::min(slice_elements_, end - first), is_shared};
}

CallPart CallParts::at(std::uint64_t index) const {
  if (begins_with_barrier_) {
    if (index < kBarrierParts) return barrier_part(index);
    index -= kBarrierParts;
  }
  switch (call_->collective) {
    case Collective::all_reduce:
      return all_reduce_part(index);
    case Collective::reduce:
      return reduce_part(index);
    case Collective::broadcast:
      return broadcast_part(index);
    case Collective::all_gather:
      return columns_ > 1 ? all_gather_part(index) : short_all_gather_part(index);
    case Collective::reduce_scatter:
      return reduce_scatter_part(index);
    default:
      return block_exchange_part(index);
  }
}

int CallParts::column_of_root() const { return layout_->topology().local_rank(call_->root); }

CallPart CallParts::on_node(Collective collective, std::uint64_t count, int root) const {
  CallPart part;
  part.call = *call_;
  part.call.whole = call_;
  part.call.whole_number = number_;
  part.call.collective = collective;
  part.call.count = count;
  part.call.root = root;
  if (call_->reduction() == hcclAvg)
    part.call.operation = hcclSum;  // the sum is divided at the end
  return part;
}

CallPart CallParts::in_column(Collective collective, std::uint64_t count, int column,
                              int root) const {
  CallPart part = on_node(collective, count, root);
  part.scope = CallPart::Scope::column;
  part.column = column;
  return part;
}

CallPart CallParts::barrier_part(std::uint64_t index) const {
  return index == 1 ? in_column(Collective::barrier, 0, 0) : on_node(Collective::barrier, 0);
}

CallPart CallParts::all_reduce_part(std::uint64_t index) const {
  const CallSlice of = slice(index / parts_per_slice_);
  const std::uint64_t at = of.first * element_bytes_;
  const std::uint64_t count =
      of.is_shared ? of.count / static_cast<std::uint64_t>(columns_) : of.count;
  CallPart part;
  switch (index % parts_per_slice_) {
    case 0:
      part = of.is_shared ? on_node(Collective::reduce_scatter, count)
                          : on_node(Collective::reduce, count, 0);
      part.call.send = call_->send + at;
      part.call.recv = exchange_;
      return part;
    case 1:
      part = in_column(Collective::all_reduce, count, of.is_shared ? layout_->local_rank() : 0);
      part.call.send = part.call.recv = exchange_;
      return part;
    default:
      part = of.is_shared ? on_node(Collective::all_gather, count)
                          : on_node(Collective::broadcast, count, 0);
      part.call.send = exchange_;
      part.call.recv = call_->recv + at;
      return part;
  }
}

CallPart CallParts::reduce_part(std::uint64_t index) const {
  const CallSlice of = slice(index / parts_per_slice_);
  const std::uint64_t at = of.first * element_bytes_;
  CallPart part;
  switch (index % parts_per_slice_) {
    case 0:
      part = on_node(Collective::reduce, of.count, column_of_root());
      part.call.send = call_->send + at;
      part.call.recv = exchange_;
      return part;
    case 1:
      part = in_column(Collective::reduce, of.count, column_of_root(),
                       layout_->topology().node_of(call_->root));
      part.call.send = part.call.recv = exchange_;
      return part;
    default:
      part = on_node(Collective::reduce, layout_->rank() == call_->root ? of.count : 0);
      part.scope = CallPart::Scope::copy;
      part.call.send = exchange_;
      part.call.recv = call_->recv + at;
      return part;
  }
}

CallPart CallParts::broadcast_part(std::uint64_t index) const {
  const CallSlice of = slice(index / parts_per_slice_);
  const std::uint64_t at = of.first * element_bytes_;
  const std::uint64_t source = layout_->rank() == call_->root ? call_->send + at : exchange_;
  if (index % parts_per_slice_ == 0) {
    CallPart part = in_column(Collective::broadcast, of.count, column_of_root(),
                              layout_->topology().node_of(call_->root));
    part.call.send = part.call.recv = source;
    return part;
  }
  CallPart part = on_node(Collective::broadcast, of.count, column_of_root());
  part.call.send = source;
  part.call.recv = call_->recv + at;
  return part;
}

CallPart CallParts::short_all_gather_part(std::uint64_t index) const {
  const std::uint64_t of_node =
      block_elements_ * static_cast<std::uint64_t>(layout_->local_ranks());
  const std::uint64_t gathered = exchange_ + kLeastBytesForAllColumns;
  CallPart part;
  switch (index) {
    case 0:
      part = on_node(Collective::all_gather, block_elements_);
      part.call.recv = exchange_;
      return part;
    case 1:
      part = in_column(Collective::all_gather, of_node, 0);
      part.call.send = exchange_;
      part.call.recv = gathered;
      return part;
    default:
      part =
          on_node(Collective::broadcast, of_node * static_cast<std::uint64_t>(layout_->nodes()), 0);
      part.call.send = gathered;
      return part;
  }
}

// First, the ranks of each column gather their blocks. Then the ranks of every node gather the
// blocks of one node after another.
CallPart CallParts::all_gather_part(std::uint64_t index) const {
  const std::uint64_t block = block_elements_ * element_bytes_;
  const std::uint64_t of_node = block * static_cast<std::uint64_t>(layout_->local_ranks());
  const std::uint64_t own = block * static_cast<std::uint64_t>(layout_->local_rank());
  if (index == 0) {
    CallPart part = in_column(Collective::all_gather, block_elements_, layout_->local_rank());
    part.call.recv = call_->recv + own;
    part.stride = of_node;
    return part;
  }
  CallPart part = on_node(Collective::all_gather, block_elements_);
  part.call.recv = call_->recv + (index - 1) * of_node;
  part.call.send = part.call.recv + own;
  return part;
}

// First, the ranks of every node reduce-scatter the blocks for one destination node after another.
// Then the ranks of each column reduce-scatter these partial results.
CallPart CallParts::reduce_scatter_part(std::uint64_t index) const {
  const std::uint64_t block = block_elements_ * element_bytes_;
  const std::uint64_t of_node = block * static_cast<std::uint64_t>(layout_->local_ranks());
  if (index == static_cast<std::uint64_t>(layout_->nodes())) {
    CallPart part = in_column(Collective::reduce_scatter, block_elements_, layout_->local_rank());
    part.call.send = exchange_;
    return part;
  }
  CallPart part = on_node(Collective::reduce_scatter, block_elements_);
  part.call.send = call_->send + index * of_node;
  part.call.recv = exchange_ + index * block;
  return part;
}

// First, the ranks of every node exchange the blocks for one destination node after another. Each
// rank then holds its node's blocks for all ranks of its column, and the ranks of each column
// exchange these blocks.
CallPart CallParts::block_exchange_part(std::uint64_t index) const {
  const std::uint64_t of_node =
      block_elements_ * static_cast<std::uint64_t>(layout_->local_ranks());
  if (index == static_cast<std::uint64_t>(layout_->nodes())) {
    CallPart part = in_column(call_->collective, call_->count, layout_->local_rank());
    part.call.send = exchange_;
    return part;
  }
  CallPart part = on_node(call_->collective, of_node);
  part.call.send = call_->send + index * of_node * element_bytes_;
  part.call.recv = exchange_ + index * of_node * element_bytes_;
  return part;
}

}  // namespace hccl::multinode
