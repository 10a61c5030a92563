// SPDX-License-Identifier: Apache-2.0
// Creates a communicator whose ranks are devices of this process.
#pragma once

#include "comm/communicator.h"

#include <memory>
#include <vector>

namespace hccl::comm {

// Creates the communicator. devices[i] joins as rank i. Blocks until all devices have joined. If a
// device cannot join, throws an Error with the reason, and creates no communicator.
[[nodiscard]] std::vector<std::shared_ptr<Communicator>> create_all(
    const hcclUniqueId& id, const std::vector<std::shared_ptr<device::Device>>& devices);

}  // namespace hccl::comm
