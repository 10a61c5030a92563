// SPDX-License-Identifier: Apache-2.0
// Sizes as people write them (64M), as people read them (64 MiB), the sweep of sizes of a run, and
// times as people write them (5m).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hccl_perf {

// Bytes from "8", "32K", "1.5M", "2G" or "1T" (powers of 1024, case does not matter), with "B" or
// "iB" behind or not. Throws UsageError.
[[nodiscard]] std::uint64_t parse_bytes(const std::string& written);

// Seconds from "30", "30s", "1.5m" or "2h". Throws UsageError.
[[nodiscard]] double parse_seconds(const std::string& written);

// "8 B", "32 KiB", "1.5 MiB".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

// With `digits` after the point, which is a point in every locale.
[[nodiscard]] std::string decimal(double value, int digits);

// From `first` to `last`: times `factor` if it is 2 or more, else plus `step`.
[[nodiscard]] std::vector<std::uint64_t> size_sweep(std::uint64_t first, std::uint64_t last,
                                                    std::uint64_t step, std::uint64_t factor);

// "0-2,5" from {0, 1, 2, 5}.
[[nodiscard]] std::string format_ranks(const std::vector<int>& ranks);

}  // namespace hccl_perf
