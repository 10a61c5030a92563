// SPDX-License-Identifier: Apache-2.0
#include "comm/forced_names.h"

#include "network/routes.h"
#include "planner/planner.h"

namespace hccl::comm {

void check_forced_names(const Config& config) {
  planner::Planner::check(config.algorithm);
  network::Routes::check(config.transport);
}

}  // namespace hccl::comm
