// SPDX-License-Identifier: Apache-2.0
// Creates a communicator whose ranks are devices of this process.
#pragma once

#include "comm/communicator.h"

#include <memory>
#include <vector>

namespace hccl::comm {

// Joins each device, devices[i] as rank i. Blocks until all have joined. If one cannot join, throws
// its Error, and no communicator is created.
[[nodiscard]] std::vector<std::shared_ptr<Communicator>> create_all(
    const hcclUniqueId& id, const std::vector<std::shared_ptr<device::Device>>& devices);

}  // namespace hccl::comm
