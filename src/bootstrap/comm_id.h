// SPDX-License-Identifier: Apache-2.0
// Parses HCCL_COMM_ID, the address and port of the rendezvous.
#pragma once

#include "base/address.h"

#include <string>
#include <vector>

namespace hccl::bootstrap {

// Returns the addresses that "address:port" resolves to, each with that port. The text is split at
// its last colon. The address is an IPv4 address, an IPv6 address with or without brackets, or a
// host name, whose IPv4 addresses come first in the result. Blocks while a name is resolved. Throws
// Error(hcclInvalidArgument), or Error(hcclSocketError) if no name server answers in time; the text
// names HCCL_COMM_ID.
[[nodiscard]] std::vector<Address> parse_comm_id(const std::string& comm_id);

}  // namespace hccl::bootstrap
