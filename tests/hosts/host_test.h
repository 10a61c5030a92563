// SPDX-License-Identifier: Apache-2.0
// Helpers for tests whose ranks run on hosts of a private network.
#pragma once

#include "host_network.h"
#include "ranks.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace hccl::test {

class Hosts : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = HostNetwork::why_not();
    if (!why_not.empty()) GTEST_SKIP() << "needs network namespaces: " << why_not;
  }
};

// Returns options in which HCCL_COMM_ID names the host of rank 0 and each rank chooses its own
// interfaces.
inline RankOptions on_hosts(int host_of_rank_0) {
  return {.environment = {{"HCCL_COMM_ID", HostNetwork::address(host_of_rank_0) + ":29400"},
                          {"HCCL_SOCKET_IFNAME", ""}},
          .seconds = 150};
}

// Moves the rank to `host`. Must precede the rank's first call into the library.
inline void move_to(const HostNetwork& network, int host) {
  unsetenv("HCCL_NODE_ID");
  network.enter(host);
}

}  // namespace hccl::test
