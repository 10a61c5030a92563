// SPDX-License-Identifier: Apache-2.0
// The key with which the ranks of a unique id authenticate, and the warnings if no secret is set or
// it is short.
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
[[nodiscard]] Bytes join_secret(const UniqueId& id);

struct JoinKey {
  Bytes bytes;             // the pre-shared key of TLS sessions
  bool is_secret = false;  // if false, anyone can compute the key, so it proves nothing
};

// Returns the key that is derived from join_secret(). Stretches the secret of a fixed address,
// which may be guessed; this blocks for about a tenth of a second, once per process. Throws as
// join_secret() does.
[[nodiscard]] JoinKey join_key(const UniqueId& id);

}  // namespace hccl::bootstrap
