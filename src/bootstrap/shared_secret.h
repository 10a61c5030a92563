// SPDX-License-Identifier: Apache-2.0
// The secret shared by the ranks that join at HCCL_COMM_ID, and the warnings if it is missing or
// short.
#pragma once

#include "base/fields.h"
#include "bootstrap/unique_id.h"

namespace hccl::bootstrap {

// Returns the secret with which the ranks of this id authenticate: the id's own secret or, for a
// fixed address, HCCL_SECRET or the contents of HCCL_SECRET_FILE. Returns no bytes if neither
// variable is set. For a fixed address, warns once per process about a short secret, and about a
// missing secret if the address is on another machine. For a fixed address, throws
// Error(hcclInvalidArgument) if both variables are set or the file is unusable, or if
// HCCL_REQUIRE_SECRET is set and other machines can reach the address, but the secret is missing or
// too short.
[[nodiscard]] Bytes proof_key(const UniqueId& id);

}  // namespace hccl::bootstrap
