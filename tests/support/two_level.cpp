// SPDX-License-Identifier: Apache-2.0
#include "two_level.h"

#include "multinode/call_parts.h"
#include "planner/planner.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string>

namespace hccl::test {
namespace {

using multinode::CallPart;
using multinode::CallParts;
using multinode::NodeLayout;
using Members = std::vector<std::size_t>;

constexpr std::uint64_t kRegion = std::uint64_t{1} << 40;  // bytes between the buffers of a rank
constexpr std::uint64_t kSend = kRegion;
constexpr std::uint64_t kRecv = 2 * kRegion;
constexpr std::uint64_t kExchange = 3 * kRegion;

// The memory of a rank, as words of one element each.
class RankWords {
 public:
  explicit RankWords(std::size_t element) : element_(element) {}

  // Returns the word of element `index` of the buffer at `address`.
  std::uint64_t& at(std::uint64_t address, std::uint64_t index) {
    auto& words = regions_[address / kRegion % regions_.size()];
    const std::uint64_t position = address % kRegion / element_ + index;
    if (words.size() <= position) words.resize(position + 1);
    return words[position];
  }
  std::vector<std::uint64_t> read(std::uint64_t address, std::uint64_t count) {
    std::vector<std::uint64_t> words;
    for (std::uint64_t i = 0; i < count; ++i) words.push_back(at(address, i));
    return words;
  }
  void write(std::uint64_t address, const std::vector<std::uint64_t>& words) {
    for (std::uint64_t i = 0; i < words.size(); ++i) at(address, i) = words[i];
  }

 private:
  std::size_t element_;
  std::array<std::vector<std::uint64_t>, 4> regions_;
};

class PartsInterpreter {
 public:
  PartsInterpreter(const planner::Topology& topology, const CollectiveCall& call, bool in_place,
                   const Words& inputs)
      : topology_(topology),
        column_planner_(column_topology(topology), ""),
        call_(call),
        element_(size_of(call.data_type())) {
    const auto ranks = static_cast<std::size_t>(topology.ranks());
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto number = static_cast<int>(rank);
      CollectiveCall& own = calls_.emplace_back(call);
      own.send = kSend;
      own.recv = kRecv;
      if (in_place) place(own, number);
      layouts_.emplace_back(topology, number);
      parts_.emplace_back(layouts_.back(), own, 0).set_exchange(kExchange);
      memory_.emplace_back(element_).write(own.send, inputs[rank]);
    }
  }

  Words run() {
    for (std::uint64_t index = 0; index < parts_.front().size(); ++index) run_part(index);
    Words outputs;
    for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
      const bool has_output = receives(call_, static_cast<int>(rank));
      const std::uint64_t bytes = recv_bytes(call_, topology_.ranks());
      outputs.push_back(memory_[rank].read(calls_[rank].recv, has_output ? bytes / element_ : 0));
    }
    return outputs;
  }

 private:
  static planner::Topology column_topology(const planner::Topology& topology) {
    std::vector<std::string> nodes;
    for (std::size_t node = 0; node < topology.nodes().size(); ++node)
      nodes.push_back(std::to_string(node));
    return planner::Topology(nodes);
  }

  // Changes the buffer addresses of a rank's call so that the call is in place.
  void place(CollectiveCall& own, int rank) const {
    const std::uint64_t block =
        chunk_bytes(own, topology_.ranks()) * static_cast<std::uint64_t>(rank);
    const bool in_input = own.traits().has_blocks_in_input && !own.traits().has_blocks_in_output;
    const bool in_output = own.traits().has_blocks_in_output && !own.traits().has_blocks_in_input;
    own.recv = in_input ? own.send + block : own.send;
    if (in_output) own.send = own.recv + block;
  }

  void run_part(std::uint64_t index) {
    std::vector<CallPart> parts;
    for (const CallParts& of_rank : parts_) parts.push_back(of_rank.at(index));
    switch (parts.front().scope) {
      case CallPart::Scope::node:
        for (const std::vector<int>& node : topology_.nodes())
          run_on_node(parts, Members(node.begin(), node.end()));
        break;
      case CallPart::Scope::column:
        for (std::size_t column = 0; column < topology_.nodes().front().size(); ++column)
          run_in_column(parts, column);
        break;
      default:
        for (std::size_t rank = 0; rank < parts.size(); ++rank) {
          const CollectiveCall& copy = parts[rank].call;
          memory_[rank].write(copy.recv, memory_[rank].read(copy.send, copy.count));
        }
    }
  }

  // Computes a collective on a node from its definition.
  void run_on_node(const std::vector<CallPart>& parts, const Members& members) {
    const int ranks = static_cast<int>(members.size());
    const CollectiveCall& any = parts[members.front()].call;
    const std::uint64_t block = chunk_bytes(any, ranks) / element_;
    Words inputs;
    for (const std::size_t rank : members)
      inputs.push_back(
          memory_[rank].read(parts[rank].call.send, send_bytes(any, ranks) / element_));
    for (std::size_t local = 0; local < members.size(); ++local) {
      if (!receives(any, static_cast<int>(local))) continue;
      const CollectiveCall& own = parts[members[local]].call;
      memory_[members[local]].write(own.recv, output_on_node(any, inputs, local, block));
    }
  }

  std::vector<std::uint64_t> output_on_node(const CollectiveCall& call, const Words& inputs,
                                            std::size_t local, std::uint64_t block) const {
    const std::uint64_t own = block * local;
    std::vector<std::uint64_t> output;
    const auto append = [&](const std::vector<std::uint64_t>& from, std::uint64_t first) {
      for (std::uint64_t i = 0; i < block; ++i) output.push_back(from.at(first + i));
    };
    const auto fold_at = [&](std::uint64_t first) {
      for (std::uint64_t i = 0; i < block; ++i) {
        std::vector<std::uint64_t> column;
        for (const auto& input : inputs) column.push_back(input.at(first + i));
        output.push_back(fold(call.data_type(), call.reduction(), column));
      }
    };
    switch (call.collective) {
      case Collective::barrier:
        break;
      case Collective::broadcast:
        append(inputs[static_cast<std::size_t>(call.root)], 0);
        break;
      case Collective::all_gather:
        for (const auto& input : inputs) append(input, 0);
        break;
      case Collective::all_to_all:
        for (const auto& input : inputs) append(input, own);
        break;
      case Collective::reduce_scatter:
        fold_at(own);
        break;
      default:
        fold_at(0);
    }
    return output;
  }

  // Interprets the schedules of a column's call.
  void run_in_column(const std::vector<CallPart>& parts, std::size_t column) {
    Members members;
    for (const std::vector<int>& node : topology_.nodes()) {
      if (column >= node.size()) return;
      members.push_back(static_cast<std::size_t>(node[column]));
    }
    const CallPart& any = parts[members.front()];
    if (any.column != static_cast<int>(column) || any.call.collective == Collective::barrier)
      return;
    const int ranks = static_cast<int>(members.size());
    const std::uint64_t bytes = chunk_bytes(any.call, ranks);
    const auto is_placed = [&](std::size_t rank) {
      const CallPart& part = parts[rank];
      const auto node = static_cast<std::uint64_t>(topology_.node_of(static_cast<int>(rank)));
      if (part.stride != 0) return part.call.recv + node * part.stride == part.call.send;
      return is_in_place(part.call, static_cast<int>(node), ranks);
    };
    const planner::Plan plan = column_planner_.plan(
        {any.call.collective, bytes, 0, std::max(any.call.root, 0), is_placed(members.front())});
    schedule::Shape shape = plan.shape;
    std::vector<AllRanks> channels;
    const auto build = [&](const schedule::Shape& own) { return column_planner_.build(plan, own); };
    for (; shape.channel < shape.channels; ++shape.channel)
      channels.push_back(build_all(shape, build));
    Words inputs;
    for (const std::size_t rank : members) {
      inputs.push_back(
          memory_[rank].read(parts[rank].call.send, send_bytes(any.call, ranks) / element_));
    }
    const Words outputs = interpret(channels, call_.data_type(), any.call.reduction(), inputs,
                                    bytes / element_, static_cast<std::uint32_t>(64 / element_));
    for (std::size_t node = 0; node < members.size(); ++node)
      store(parts[members[node]], members[node], outputs[node], bytes / element_);
  }

  // Stores one rank's output of a column's call. Each block has `block` elements.
  void store(const CallPart& part, std::size_t rank, std::vector<std::uint64_t> output,
             std::uint64_t block) {
    if (call_.reduction() == hcclAvg) {
      for (std::uint64_t& word : output)
        word = average_of_sum(call_.data_type(), word, calls_.size());
    }
    const std::uint64_t stride = part.stride != 0 ? part.stride : block * element_;
    for (std::uint64_t first = 0; first < output.size(); first += block) {
      const auto begin = output.begin() + static_cast<std::ptrdiff_t>(first);
      memory_[rank].write(part.call.recv + first / block * stride,
                          {begin, begin + static_cast<std::ptrdiff_t>(block)});
    }
  }

  const planner::Topology& topology_;
  const planner::Planner column_planner_;
  const CollectiveCall& call_;
  std::size_t element_;
  std::deque<CollectiveCall> calls_;
  std::deque<NodeLayout> layouts_;
  std::vector<CallParts> parts_;
  std::deque<RankWords> memory_;
};

}  // namespace

Words interpret_parts(const planner::Topology& topology, const CollectiveCall& call, bool in_place,
                      const Words& inputs) {
  return PartsInterpreter(topology, call, in_place, inputs).run();
}

}  // namespace hccl::test
