// SPDX-License-Identifier: Apache-2.0
// Checks the names in HCCL_ALGO and HCCL_TRANSPORT, which force an algorithm or a transport.
#pragma once

#include "base/config.h"

namespace hccl::comm {

// Throws Error(hcclInvalidArgument) if one of the names is not known.
void check_forced_names(const Config& config);

}  // namespace hccl::comm
