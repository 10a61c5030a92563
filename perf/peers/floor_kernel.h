// SPDX-License-Identifier: Apache-2.0
// The memory floor's inner loop: sources summed, the sum written to every destination, with cached
// or streaming stores.
#pragma once

#include <cstddef>
#include <span>

namespace peers {

// destinations[d][i] = sum over s of sources[s][i] for i in [first, first + count). `streaming`
// bypasses the cache and needs destinations aligned to 64 bytes at `first`; the stores are visible
// to other threads on return.
void sum_to_all(std::span<const float* const> sources, std::span<float* const> destinations,
                std::size_t first, std::size_t count, bool streaming);

}  // namespace peers
