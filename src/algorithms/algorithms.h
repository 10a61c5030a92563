// SPDX-License-Identifier: Apache-2.0
// The schedule builders of the flat algorithms, by source file. A builder is a pure function of a
// shape, and accepts any number of ranks and any root. Users select an algorithm by its name in the
// catalogue.
#pragma once

#include "schedule/schedule.h"
#include "schedule/shape.h"

namespace hccl::algorithms {

using schedule::Schedule;
using schedule::Shape;

// ring.cpp
[[nodiscard]] Schedule ring_all_reduce(const Shape& shape);
[[nodiscard]] Schedule ring_reduce_scatter(const Shape& shape);
[[nodiscard]] Schedule ring_all_gather(const Shape& shape);

// chain.cpp
[[nodiscard]] Schedule chain_broadcast(const Shape& shape);
[[nodiscard]] Schedule chain_reduce(const Shape& shape);

// double_tree.cpp
[[nodiscard]] Schedule tree_all_reduce(const Shape& shape);
[[nodiscard]] Schedule tree_broadcast(const Shape& shape);
[[nodiscard]] Schedule tree_reduce(const Shape& shape);

// halving_doubling.cpp
[[nodiscard]] Schedule halving_doubling_all_reduce(const Shape& shape);
[[nodiscard]] Schedule halving_reduce_scatter(const Shape& shape);
[[nodiscard]] Schedule doubling_all_gather(const Shape& shape);

// direct.cpp
[[nodiscard]] Schedule one_shot_all_reduce(const Shape& shape);
[[nodiscard]] Schedule direct_all_reduce(const Shape& shape);
[[nodiscard]] Schedule direct_reduce_scatter(const Shape& shape);
[[nodiscard]] Schedule direct_all_gather(const Shape& shape);
[[nodiscard]] Schedule direct_broadcast(const Shape& shape);
[[nodiscard]] Schedule direct_reduce(const Shape& shape);

// pairwise.cpp, dissemination.cpp
[[nodiscard]] Schedule pairwise_all_to_all(const Shape& shape);
[[nodiscard]] Schedule dissemination_barrier(const Shape& shape);

}  // namespace hccl::algorithms
