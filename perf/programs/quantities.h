// SPDX-License-Identifier: Apache-2.0
// Sizes as users write them (64M) and as reports show them (64 MiB), the sweep of sizes of a run,
// and times as users write them (5m).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hccl_perf {

// Parses bytes such as "8", "32K", "1.5M", "2G" or "1T". The suffixes are powers of 1024, in upper
// or lower case, with an optional "B" or "iB" at the end. Throws UsageError.
[[nodiscard]] std::uint64_t parse_bytes(const std::string& written);

// Parses seconds such as "30", "30s", "1.5m" or "2h". Throws UsageError.
[[nodiscard]] double parse_seconds(const std::string& written);

// Returns a string such as "8 B", "32 KiB" or "1.5 MiB".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

// Returns the value with `digits` decimals after a point, in every locale.
[[nodiscard]] std::string decimal(double value, int digits);

// Returns the sizes from `first` to `last`. If `factor` is at least 2, each size is `factor` times
// the previous one; otherwise it is larger by `step`.
[[nodiscard]] std::vector<std::uint64_t> size_sweep(std::uint64_t first, std::uint64_t last,
                                                    std::uint64_t step, std::uint64_t factor);

// Returns a string such as "0-2,5" for {0, 1, 2, 5}.
[[nodiscard]] std::string format_ranks(const std::vector<int>& ranks);

}  // namespace hccl_perf
