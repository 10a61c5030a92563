// SPDX-License-Identifier: Apache-2.0
// HCCL_COMM_ID: the address and port at which the ranks meet.
#pragma once

#include "base/address.h"

#include <string>
#include <vector>

namespace hccl::bootstrap {

// Returns the addresses of "address:port", split at the last colon. The address is IPv4, IPv6 bare
// or in brackets, or a name, whose IPv4 addresses come first. Blocks while a name is looked up.
// Throws Error(hcclInvalidArgument) that names HCCL_COMM_ID.
[[nodiscard]] std::vector<Address> parse_comm_id(const std::string& comm_id);

}  // namespace hccl::bootstrap
