// SPDX-License-Identifier: Apache-2.0
// HCCL_COMM_ID: the address and port at which the ranks meet.
#pragma once

#include "base/address.h"

#include <string>
#include <vector>

namespace hccl::bootstrap {

// The addresses of "address:port", split at the last colon: IPv4, IPv6 bare or in brackets, or a
// name (IPv4 first). Throws Error(hcclInvalidArgument) that names HCCL_COMM_ID.
[[nodiscard]] std::vector<Address> parse_comm_id(const std::string& comm_id);

}  // namespace hccl::bootstrap
