// SPDX-License-Identifier: Apache-2.0
// Double binary tree: P. Sanders, J. Speck and J. L. Träff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", 2009. The channels alternate between two trees, so that with two
// channels, each tree carries half of the data. Apart from the root, a rank that has children in
// one tree is a leaf of the other. A message takes about log2(n) hops up or down a tree. A rank has
// at most three peers in a tree. An all-reduce cuts the tree's data into `pipeline` chunks, which
// go up and then down the tree. A rank sends at most three times the tree's data, and receives no
// more than that.
#include "algorithms/algorithms.h"
#include "algorithms/binary_tree.h"
#include "schedule/builder.h"

namespace hccl::algorithms {

using schedule::input;
using schedule::output;
using schedule::ScheduleBuilder;
using schedule::Span;

namespace {

// Passes a chunk from the parent to the children. The root sends its own chunk.
void pass_downward(ScheduleBuilder& builder, const Family& family, const Span& own,
                   const Span& into) {
  if (family.parent) builder.receive(*family.parent, into);
  for (const std::int32_t child : family.children) {
    if (family.parent) {
      builder.forward(child, into);
    } else {
      builder.send(child, own);
    }
  }
}

// Reduces the rank's own chunk and its children's chunks, and sends the result to the parent.
void reduce_upward(ScheduleBuilder& builder, const Family& family, const Span& own,
                   const Span& into) {
  Span operand = own;
  for (const std::int32_t child : family.children) {
    builder.receive_reduce(child, into, operand);
    operand = into;
  }
  if (!family.parent) return;
  if (family.children.empty()) {
    builder.send(*family.parent, own);
  } else {
    builder.forward(*family.parent, into);
  }
}

}  // namespace

Schedule tree_broadcast(const Shape& shape) {
  const Family family = family_in_tree(shape);
  ScheduleBuilder builder(shape, 1);
  pass_downward(builder, family, input(0), output(0));
  if (!family.parent && !shape.in_place) builder.copy(output(0), input(0));
  return std::move(builder).finish();
}

Schedule tree_reduce(const Shape& shape) {
  const Family family = family_in_tree(shape);
  ScheduleBuilder builder(shape, 1);
  if (shape.rank_count == 1 && !shape.in_place) builder.copy(output(0), input(0));
  reduce_upward(builder, family, input(0), family.parent ? schedule::scratch(0, 0) : output(0));
  return std::move(builder).finish();
}

// Step t carries chunk t up and chunk t - 1 down, both slice by slice through the whole tree. All
// ranks use the same lag of one chunk: if it were shorter near the root, parent and child would
// wait for each other in different steps.
Schedule tree_all_reduce(const Shape& shape) {
  const Family family = family_in_tree(shape);
  const std::uint32_t chunks = shape.pipeline;
  ScheduleBuilder builder(shape, chunks);
  if (shape.rank_count == 1) {
    if (!shape.in_place) builder.copy(output(0, chunks), input(0, chunks));
    return std::move(builder).finish();
  }
  for (std::uint32_t step = 0; step <= chunks; ++step) {
    if (step < chunks) reduce_upward(builder, family, input(step), output(step));
    if (step > 0) pass_downward(builder, family, output(step - 1), output(step - 1));
    builder.end_step();
  }
  return std::move(builder).finish();
}

}  // namespace hccl::algorithms
