// SPDX-License-Identifier: Apache-2.0
// Tests whose ranks start ready: in a communicator of all ranks, with a stream. They end their
// session behind the body, each call with success.
#pragma once

#include "session.h"

#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::test {

using RankBody = std::function<void(World&, Session&, const Group&, synStreamHandle)>;

// Returns what runs `body` on a rank, whose process `before` has changed where one is given.
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

// The same for ranks that are processes and for ranks that are threads, of each of these numbers.
inline void expect_success(const RankBody& body, const std::vector<int>& processes,
                           const std::vector<int>& threads = {}, const RankOptions& options = {}) {
  for (const int ranks : processes) expect_success(body, ranks, options);
  for (const int ranks : threads)
    EXPECT_EQ(failures(run_ranks_as_threads(ranks, in_session(body), options)), "") << ranks;
}

}  // namespace hccl::test

// The parameters of a body, which need not use them all.
#define RANK_PARAMETERS                                             \
  [[maybe_unused]] World &world, [[maybe_unused]] Session &session, \
      [[maybe_unused]] const Group &group, [[maybe_unused]] synStreamHandle stream
#define RANK_BODY(name) void name(RANK_PARAMETERS)

// A test in which every one of `ranks` processes runs the body that follows, and finishes;
// RankOptions may follow the number. A vector of numbers runs it with each of them, and a second
// vector with as many threads.
#define RANK_TEST(suite, name, ...)                                         \
  static RANK_BODY(suite##_##name##_rank);                                  \
  TEST(suite, name) { expect_success(suite##_##name##_rank, __VA_ARGS__); } \
  static RANK_BODY(suite##_##name##_rank)
