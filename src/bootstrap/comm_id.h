// SPDX-License-Identifier: Apache-2.0
// Parses HCCL_COMM_ID, the address and port of the rendezvous.
#pragma once

#include "base/address.h"

#include <string>
#include <vector>

namespace hccl::bootstrap {

// Returns the addresses that an "address:port" stands for; the text is split at the last colon. The
// address is an IPv4 address, an IPv6 address with or without brackets, or a name. IPv4 addresses
// of a name precede its other addresses in the result. Blocks while a name is resolved. Throws
// Error(hcclInvalidArgument), which names HCCL_COMM_ID.
[[nodiscard]] std::vector<Address> parse_comm_id(const std::string& comm_id);

}  // namespace hccl::bootstrap
