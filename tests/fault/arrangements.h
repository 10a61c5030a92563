// SPDX-License-Identifier: Apache-2.0
// A fixture that runs two ranks in several arrangements: on one node with various transports and
// algorithms, and on two nodes.
#pragma once

#include "check.h"
#include "faults.h"
#include "ranks.h"

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::test {

struct Arrangement {
  const char* name;
  bool two_nodes = false;
  std::vector<std::pair<std::string, std::string>> environment{};

  friend std::ostream& operator<<(std::ostream& out, const Arrangement& value) {
    return out << value.name;
  }
};

inline std::vector<Arrangement> every_arrangement() {
  return {{"node"},
          {"shm", false, {{"HCCL_TRANSPORT", "shm"}}},
          {"tcp", false, {{"HCCL_TRANSPORT", "tcp"}}},
          {"ring", false, {{"HCCL_ALGO", "ring"}}},
          {"two_nodes", true}};
}

inline std::string arrangement_name(const testing::TestParamInfo<Arrangement>& info) {
  return info.param.name;
}

class EveryArrangement : public testing::TestWithParam<Arrangement> {
 protected:
  // Runs `function` on two ranks in the test's arrangement and expects both ranks to succeed.
  static void run(const RankFunction& function) {
    const RankOptions options{.environment = GetParam().environment};
    const RankFunction on_nodes = [&](World& world) {
      if (GetParam().two_nodes) move_to_own_node(world);
      function(world);
    };
    EXPECT_EQ(failures(run_ranks(2, on_nodes, options)), "");
  }
};

}  // namespace hccl::test
