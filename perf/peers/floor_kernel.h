// SPDX-License-Identifier: Apache-2.0
// The inner loop of the memory floor: sums the sources and writes the sum to every destination,
// with cached or streaming stores.
#pragma once

#include <cstddef>
#include <span>

namespace peers {

// Computes destinations[d][i] = sum over s of sources[s][i] for i in [first, first + count).
// If `streaming`, the stores bypass the cache, and element `first` of each destination must be
// aligned to 64 bytes. Before it returns, the function flushes such stores, so that the caller can
// publish them to other threads with a release operation.
void sum_to_all(std::span<const float* const> sources, std::span<float* const> destinations,
                std::size_t first, std::size_t count, bool streaming);

}  // namespace peers
