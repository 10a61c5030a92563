// SPDX-License-Identifier: Apache-2.0
// The secret that the ranks of HCCL_COMM_ID share, and what is said where they share none.
#pragma once

#include "base/fields.h"
#include "bootstrap/unique_id.h"

namespace hccl::bootstrap {

// Returns the secret that the ranks of this id prove to know: the id's own, or for a fixed address
// HCCL_SECRET or the content of HCCL_SECRET_FILE, empty if neither is set. Warns once in the
// process about a secret that is short, and about none where the address is on another machine.
// Throws Error(hcclInvalidArgument) if both variables are set, if the file is not fit to hold a
// secret, or if HCCL_REQUIRE_SECRET demands one, or a longer one.
[[nodiscard]] Bytes proof_key(const UniqueId& id);

}  // namespace hccl::bootstrap
