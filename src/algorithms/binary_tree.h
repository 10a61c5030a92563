// SPDX-License-Identifier: Apache-2.0
// The two trees of the double binary tree.
#pragma once

#include "algorithms/numbering.h"

#include <bit>
#include <optional>
#include <vector>

namespace hccl::algorithms {

struct Family {
  std::optional<std::int32_t> parent;
  std::vector<std::int32_t> children;
};

// Returns the neighbours of `place` in the in-order binary tree over places 1 .. count. Places are
// numbered from the root of the collective (numbering.h). The root of a subtree is its k-th place,
// where k is the largest power of two that does not exceed the size of the subtree. Odd places are
// leaves. The parent of the tree's root is place 0.
[[nodiscard]] inline Family family_in_order(std::int32_t count, std::int32_t place) {
  const auto top = [](std::int32_t size) {
    return static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(size)));
  };
  Family family;
  if (place == 0) {
    if (count > 0) family.children.push_back(top(count));
    return family;
  }
  std::int32_t parent = 0;
  std::int32_t before = 0;  // the last place before the subtree
  std::int32_t size = count;
  while (place != before + top(size)) {
    parent = before + top(size);
    const bool left = place < parent;
    size = left ? top(size) - 1 : size - top(size);
    if (!left) before = parent;
  }
  family.parent = parent;
  if (top(size) > 1) family.children.push_back(before + top(size) / 2);
  const std::int32_t rest = size - top(size);
  if (rest > 0) family.children.push_back(place + top(rest));
  return family;
}

// Returns the neighbours of `shape.rank` in the tree of `shape.channel`. The root of the collective
// is the parent of both trees' roots. The second tree, which odd channels use, renumbers all places
// but place 0 so that the inner places of each tree are leaves of the other: it mirrors the places
// if the number of ranks is odd, and shifts them by one if it is even.
[[nodiscard]] inline Family family_in_tree(const schedule::Shape& shape) {
  const std::int32_t others = shape.rank_count - 1;
  const bool second = shape.channel % 2 == 1;
  const bool mirrored = shape.rank_count % 2 == 1;
  const auto in_tree = [&](std::int32_t place) {
    if (!second || place == 0) return place;
    return mirrored ? shape.rank_count - place : place % others + 1;
  };
  const auto rank = [&](std::int32_t in_tree_place) {
    std::int32_t place = in_tree_place;
    if (second && place != 0)
      place = mirrored ? shape.rank_count - place : (place - 2 + others) % others + 1;
    return rank_of_place(shape, place);
  };
  Family family = family_in_order(others, in_tree(place_after_root(shape)));
  if (family.parent) family.parent = rank(*family.parent);
  for (std::int32_t& child : family.children) child = rank(child);
  return family;
}

}  // namespace hccl::algorithms
