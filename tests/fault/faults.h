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

// Requires that the communicator's error is `code` and that the error text names `rank`, if given.
void expect_failed(const Group& group, hcclResult_t code, std::optional<int> rank);

// Requires that further calls on the failed communicator return `code` and that copies on `stream`
// still run. Destroys the communicator.
void expect_usable_remains(Session& session, const Group& group, synStreamHandle stream,
                           hcclResult_t code);

// Blocks until the communicator reports a failure. Throws Failure after `limit`.
void await_async_error(const Group& group, std::chrono::seconds limit = std::chrono::seconds(30));

// Requires that `result` is a code that hcclCommInitRank returns if another rank has died (system
// or socket error) or fails to join in time (internal error, as in Gaudi's library).
void expect_missing_rank(hcclResult_t result);

// Returns options that set the variables in `environment` and capture the ranks' stderr.
[[nodiscard]] inline RankOptions with_environment(
    std::vector<std::pair<std::string, std::string>> environment) {
  return {.environment = std::move(environment), .capture_stderr = true};
}

// Returns a value for HCCL_TIMEOUT within which each rank that is neither stopped nor late does its
// part of a call. Sanitizers make ranks several times slower.
[[nodiscard]] inline std::string short_timeout() { return sanitized() ? "8" : "2"; }

// Gives this rank a node of its own. Must precede the rank's first call into the library.
inline void move_to_own_node(const World& world) {
  setenv("HCCL_NODE_ID", join("test-", getppid(), world.rank).c_str(), 1);
}

// Returns an all-reduce of `count` floats with separate send and receive buffers.
[[nodiscard]] Operation all_reduce_of(std::size_t count, std::uint64_t seed = 1);

}  // namespace hccl::test
