// SPDX-License-Identifier: Apache-2.0
// The cases every collective is taken through, whether ranks are processes or threads.
#pragma once

#include "operation.h"

#include <functional>
#include <vector>

namespace hccl::test {

// Where ranks are that do not all share one node: of each rank, and the algorithm that is forced.
struct Nodes {
  std::vector<std::string> of_rank{};
  std::string algorithm{};
};

// Types x reductions x in place or not x counts, with odd offsets and changing roots.
[[nodiscard]] std::vector<Operation> matrix_of(Collective collective, int size,
                                               const Nodes& nodes = {});

// Runs operations one after the other on a communicator of all ranks, each checked on this rank;
// `at_end` looks at the communicator then.
void run_operations(World& world, const std::vector<Operation>& operations,
                    const std::function<void(const Group&)>& at_end = {});
// All of the matrix.
void run_matrix(World& world, Collective collective, const Nodes& nodes = {});

// Barriers: no rank leaves one before all have come.
void run_barriers(World& world);

}  // namespace hccl::test
