// SPDX-License-Identifier: Apache-2.0
// The content of an hcclUniqueId: the addresses of its server, and the secret that admits a rank.
#pragma once

#include "base/address.h"
#include "base/secret.h"

#include <hccl_types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hccl::bootstrap {

inline constexpr std::size_t kMostAddresses = 8;  // of an id

struct UniqueId {
  // with_secret: made by hcclGetUniqueId, on a port of its own. fixed_address: from HCCL_COMM_ID,
  // and known to all ranks beforehand, hence without a secret.
  enum class Kind : std::uint8_t { with_secret = 1, fixed_address = 2 };

  Kind kind = Kind::with_secret;
  Secret secret{};
  std::vector<Address> addresses;  // where ranks try to connect, in this order

  // Returns a text that is equal for ids of the same server.
  [[nodiscard]] std::string key() const;
};

[[nodiscard]] hcclUniqueId encode(const UniqueId& id);
// Decodes the content of an id, and ignores the bytes after it. Throws Error(hcclInvalidArgument)
// that names the defect.
[[nodiscard]] UniqueId decode(const hcclUniqueId& id);
// Returns whether the id has never been filled: its content or its length is all zero.
[[nodiscard]] bool is_empty(const hcclUniqueId& id);

}  // namespace hccl::bootstrap
