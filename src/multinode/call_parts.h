// SPDX-License-Identifier: Apache-2.0
// The parts of a call among several nodes. A part is a call among the ranks of each node, a call
// among the ranks of a column, or a copy. The parts run one after the other.
#pragma once

#include "call/collective_call.h"
#include "multinode/node_layout.h"

#include <cstdint>

namespace hccl::multinode {

// The minimum size, in bytes, of a rank's exchange memory, which holds the data that its column
// exchanges. A reduce-scatter or an all-to-all may need more.
inline constexpr std::uint64_t kExchangeBytes = 1 << 20;

struct CallPart {
  enum class Scope : std::uint8_t { node, column, copy };

  Scope scope = Scope::node;
  int column = 0;  // if the scope is `column`
  // In this call, ranks are numbered by local rank if the scope is `node`, and by node if it is
  // `column`. A copy uses only the addresses, the count and the data type.
  CollectiveCall call;
  std::uint64_t stride = 0;  // bytes from one output block to the next; 0: contiguous
};

// How the collectives are divided:
// - Barrier: each node runs a barrier, then column 0 runs one, then each node runs another.
// - All-reduce: each node reduces a slice, the columns reduce the results of the nodes, and each
//   node then distributes the total. If all nodes have the same number of ranks, long calls are
//   divided among all columns. All other calls use only column 0: in short calls, exchanges in more
//   columns would add messages and context switches and save no time.
// - Reduce and broadcast: the column of the root exchanges the data.
// - All-gather, reduce-scatter and all-to-all: all columns exchange blocks once, and the ranks of
//   each node exchange blocks once for each node. Short all-gathers use only column 0.
// No rank's output is written before all ranks are known to make the same call: either a rank
// writes its output only after data from all nodes has arrived, or the call begins with a barrier.
class CallParts {
 public:
  // Returns whether a call can be divided. The result is the same on all ranks.
  [[nodiscard]] static bool can_divide(const NodeLayout& layout, const CollectiveCall& call);
  // Returns the size of the exchange memory that a call needs.
  [[nodiscard]] static std::uint64_t exchange_bytes(const NodeLayout& layout,
                                                    const CollectiveCall& call);

  // `number`: the position of `call` on its stream. `call` must outlive the parts, and can_divide()
  // must return true for it.
  CallParts(const NodeLayout& layout, const CollectiveCall& call, std::uint64_t number);

  // Returns whether this rank uses exchange memory. If so, call set_exchange() with the address of
  // that memory before the parts run.
  [[nodiscard]] bool exchanges_data() const;
  void set_exchange(std::uint64_t address) { exchange_ = address; }

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] CallPart at(std::uint64_t index) const;
  // Returns whether all columns exchange data.
  [[nodiscard]] bool uses_all_columns() const { return columns_ > 1; }

 private:
  struct CallSlice {
    std::uint64_t first = 0;  // index of the first element
    std::uint64_t count = 0;
    bool is_shared = false;  // among all columns
  };
  void slice_call(std::uint64_t parts_per_slice, std::uint64_t least_bytes_for_all_columns);
  [[nodiscard]] CallSlice slice(std::uint64_t number) const;
  [[nodiscard]] int column_of_root() const;

  // Return a part that runs `collective`. `count`: see CollectiveCall::count.
  [[nodiscard]] CallPart on_node(Collective collective, std::uint64_t count, int root = -1) const;
  [[nodiscard]] CallPart in_column(Collective collective, std::uint64_t count, int column,
                                   int root = -1) const;
  [[nodiscard]] CallPart barrier_part(std::uint64_t index) const;
  [[nodiscard]] CallPart all_reduce_part(std::uint64_t index) const;
  [[nodiscard]] CallPart reduce_part(std::uint64_t index) const;
  [[nodiscard]] CallPart broadcast_part(std::uint64_t index) const;
  [[nodiscard]] CallPart short_all_gather_part(std::uint64_t index) const;
  [[nodiscard]] CallPart all_gather_part(std::uint64_t index) const;
  [[nodiscard]] CallPart reduce_scatter_part(std::uint64_t index) const;
  [[nodiscard]] CallPart block_exchange_part(std::uint64_t index) const;

  const NodeLayout* layout_;
  const CollectiveCall* call_;
  std::uint64_t number_;
  std::uint64_t exchange_ = 0;
  std::uint64_t element_bytes_;
  std::uint64_t block_elements_;  // in a block or, if there are no blocks, in the message
  int columns_ = 1;               // number of columns that exchange data
  bool begins_with_barrier_ = false;
  // If the call is cut into slices:
  std::uint64_t parts_per_slice_ = 1;
  std::uint64_t slice_elements_ = 0;
  std::uint64_t shared_elements_ = 0;  // in slices that all columns share
  std::uint64_t shared_slices_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace hccl::multinode
