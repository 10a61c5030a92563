// SPDX-License-Identifier: Apache-2.0
// The meaning of an hcclUniqueId's bytes: where its server listens, and the secret that lets a rank
// in.
#pragma once

#include "base/address.h"
#include "base/secret.h"

#include <hccl_types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hccl::bootstrap {

struct UniqueId {
  // with_secret: made by hcclGetUniqueId on a port of its own. fixed_address: HCCL_COMM_ID's, known
  // to all ranks beforehand, hence without a secret.
  enum class Kind : std::uint8_t { with_secret = 1, fixed_address = 2 };

  Kind kind = Kind::with_secret;
  Secret secret{};
  std::vector<Address> addresses;  // where ranks try to connect, in this order

  // Equal for ids of the same server.
  [[nodiscard]] std::string key() const;
};

[[nodiscard]] hcclUniqueId encode(const UniqueId& id);
// Throws Error(hcclInvalidArgument) saying what is wrong with it. Bytes beyond the content are
// ignored.
[[nodiscard]] UniqueId decode(const hcclUniqueId& id);
// The content is all zero, or the length is: an id nobody has filled.
[[nodiscard]] bool is_empty(const hcclUniqueId& id);

}  // namespace hccl::bootstrap
