// SPDX-License-Identifier: Apache-2.0
// Tests in which each rank starts with a stream and a communicator of all ranks. After the body,
// each rank ends its session (Session::finish()).
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
// those of expect_success() after `body`. For example, `4` runs the body once, on 4 processes, and
// `{2, 8}, {3}` runs it three times: on 2 processes, on 8 processes and on 3 threads. RankOptions
// may follow `4` or `{3}`.
#define RANK_TEST(suite, name, ...)                                         \
  static RANK_BODY(suite##_##name##_rank);                                  \
  TEST(suite, name) { expect_success(suite##_##name##_rank, __VA_ARGS__); } \
  static RANK_BODY(suite##_##name##_rank)
