// SPDX-License-Identifier: Apache-2.0
// The test cases of every collective, for ranks as processes and as threads.
#pragma once

#include "operation.h"

#include <functional>
#include <vector>

namespace hccl::test {

// The node of each rank (empty: all ranks share one node), and the forced algorithm, if any.
struct Nodes {
  std::vector<std::string> of_rank{};
  std::string algorithm{};
};

// Returns operations of `collective` for each type and reduction, or for a sample of them, with
// varying placements, counts, offsets and roots.
[[nodiscard]] std::vector<Operation> matrix_of(Collective collective, int size,
                                               const Nodes& nodes = {});

// Runs the operations one after another on a communicator of all ranks and checks their results on
// this rank. Finally calls `at_end` with the communicator.
void run_operations(World& world, const std::vector<Operation>& operations,
                    const std::function<void(const Group&)>& at_end = {});
// Runs all operations of matrix_of().
void run_matrix(World& world, Collective collective, const Nodes& nodes = {});

// Checks that no rank leaves a barrier before all ranks have entered it.
void run_barriers(World& world);

}  // namespace hccl::test
