// SPDX-License-Identifier: Apache-2.0
// The secret that the ranks of HCCL_COMM_ID share, and the warnings if there is none.
#pragma once

#include "base/fields.h"
#include "bootstrap/unique_id.h"

namespace hccl::bootstrap {

// Returns the secret by which the ranks of this id authenticate. It is the id's own secret or, for
// a fixed address, HCCL_SECRET or the content of HCCL_SECRET_FILE; it is empty if neither is set.
// Warns once per process about a short secret, and about a missing one if the address is on another
// machine. Throws Error(hcclInvalidArgument) if both variables are set, if the file cannot serve as
// a secret, or if HCCL_REQUIRE_SECRET requires a secret or a longer one.
[[nodiscard]] Bytes proof_key(const UniqueId& id);

}  // namespace hccl::bootstrap
