// SPDX-License-Identifier: Apache-2.0
// Creates a communicator with the back end that suits its ranks.
#pragma once

#include "comm/communicator.h"

#include <memory>

namespace hccl::comm {

// Joins a communicator of `size` ranks as `rank`, with `device`. Blocks until all ranks have
// joined. Throws Error.
[[nodiscard]] std::shared_ptr<Communicator> create_communicator(
    const hcclUniqueId& id, int size, int rank, std::shared_ptr<device::Device> device);

}  // namespace hccl::comm
