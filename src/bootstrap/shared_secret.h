// SPDX-License-Identifier: Apache-2.0
// The secret that the ranks of HCCL_COMM_ID share, and the warnings if they share none.
#pragma once

#include "base/fields.h"
#include "bootstrap/unique_id.h"

namespace hccl::bootstrap {

// Returns the secret by which the ranks of this id authenticate: the id's own, or for a fixed
// address HCCL_SECRET or the content of HCCL_SECRET_FILE, empty if neither is set. Warns once per
// process about a short secret, and about a missing one if the address is on another machine.
// Throws Error(hcclInvalidArgument) if both variables are set, if the file may not hold a secret,
// or if HCCL_REQUIRE_SECRET demands one, or a longer one.
[[nodiscard]] Bytes proof_key(const UniqueId& id);

}  // namespace hccl::bootstrap
