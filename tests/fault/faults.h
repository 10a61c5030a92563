// SPDX-License-Identifier: Apache-2.0
// Checks on a failed communicator.
#pragma once

#include "operation.h"

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace hccl::test {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Requires that the communicator's error is `code` and that its text names `rank`, if given.
void expect_failed(const Group& group, hcclResult_t code, std::optional<int> rank);

// Requires that, after a failure, further calls return `code` immediately, copies on the same
// stream still run, and the communicator can be destroyed.
void expect_usable_remains(Session& session, const Group& group, synStreamHandle stream,
                           hcclResult_t code);

// Blocks until the communicator reports a failure. Throws Failure after `limit`.
void await_async_error(const Group& group, std::chrono::seconds limit = std::chrono::seconds(30));

// Requires one of the codes that a join returns if a rank has died (system or socket error) or is
// late (internal error, as in HCCL).
void expect_missing_rank(hcclResult_t result);

// Returns options that set these variables and capture the ranks' stderr.
[[nodiscard]] inline RankOptions with_environment(
    std::vector<std::pair<std::string, std::string>> environment) {
  return {.environment = std::move(environment), .capture_stderr = true};
}

// Puts the rank on a separate node. Must precede the rank's first call into the library.
inline void move_to_own_node(const World& world) {
  setenv("HCCL_NODE_ID", join("test-", getppid(), world.rank).c_str(), 1);
}

// Returns an all-reduce of `count` floats with separate send and receive buffers.
[[nodiscard]] Operation all_reduce_of(std::size_t count, std::uint64_t seed = 1);

}  // namespace hccl::test
