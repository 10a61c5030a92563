// SPDX-License-Identifier: Apache-2.0
// Parses HCCL_COMM_ID, the address and port of the rendezvous.
#pragma once

#include "base/address.h"

#include <string>
#include <vector>

namespace hccl::bootstrap {

// Parses "address:port", split at the last colon. Returns at most kMostAddresses addresses with
// that port, IPv4 before IPv6. The address may be a host name, an IPv4 address, or an IPv6 address
// with or without brackets. Blocks while a name is resolved, for at most HCCL_INIT_TIMEOUT. Throws
// Error(hcclSocketError) if no name server answers in time, and Error(hcclInvalidArgument) if the
// text cannot be parsed or the address cannot be resolved.
[[nodiscard]] std::vector<Address> parse_comm_id(const std::string& comm_id);

}  // namespace hccl::bootstrap
