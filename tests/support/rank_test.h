// SPDX-License-Identifier: Apache-2.0
// Tests in which each rank starts with a stream and a communicator of all ranks. After the body,
// each rank ends its session and requires that every call succeeds.
#pragma once

#include "session.h"

#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::test {

using RankBody = std::function<void(World&, Session&, const Group&, synStreamHandle)>;

// Returns a rank function that calls `before` unless it is null, joins a communicator of all ranks,
// calls `body`, and ends the session.
[[nodiscard]] inline RankFunction in_session(RankBody body, RankFunction before = nullptr) {
  return [body = std::move(body), before = std::move(before)](World& world) {
    if (before) before(world);
    Session session(world);
    const Group group = session.join_all();
    body(world, session, group, session.make_stream());
    session.finish();
  };
}

inline void expect_success(RankBody body, int ranks, const RankOptions& options = {}) {
  EXPECT_EQ(failures(run_ranks(ranks, in_session(std::move(body)), options)), "");
}

// Runs `body` once for each number of ranks: as processes for the numbers in `processes`, as
// threads for those in `threads`. Expects that all ranks succeed.
inline void expect_success(const RankBody& body, const std::vector<int>& processes,
                           const std::vector<int>& threads = {}, const RankOptions& options = {}) {
  for (const int ranks : processes) expect_success(body, ranks, options);
  for (const int ranks : threads)
    EXPECT_EQ(failures(run_ranks_as_threads(ranks, in_session(body), options)), "") << ranks;
}

}  // namespace hccl::test

// The parameters of a test body. A body may leave some of them unused.
#define RANK_PARAMETERS                                             \
  [[maybe_unused]] World &world, [[maybe_unused]] Session &session, \
      [[maybe_unused]] const Group &group, [[maybe_unused]] synStreamHandle stream
#define RANK_BODY(name) void name(RANK_PARAMETERS)

// Defines a test whose body runs on every rank and must succeed. The arguments after the name are
// passed to expect_success(): a number of processes, or a vector of numbers of processes and,
// optionally, one of numbers of threads, for each of which the body runs once; then, optionally,
// RankOptions.
#define RANK_TEST(suite, name, ...)                                         \
  static RANK_BODY(suite##_##name##_rank);                                  \
  TEST(suite, name) { expect_success(suite##_##name##_rank, __VA_ARGS__); } \
  static RANK_BODY(suite##_##name##_rank)
