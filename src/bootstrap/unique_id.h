// SPDX-License-Identifier: Apache-2.0
// The content of an hcclUniqueId: the addresses of its server, and the secret with which a rank is
// admitted.
#pragma once

#include "base/address.h"
#include "base/secret.h"

#include <hccl_types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hccl::bootstrap {

inline constexpr std::size_t kMostAddresses = 8;  // the maximum of an id

struct UniqueId {
  // with_secret: made by hcclGetUniqueId; its server has a port of its own. fixed_address: made
  // from HCCL_COMM_ID; all ranks know the address beforehand, hence it has no secret.
  enum class Kind : std::uint8_t { with_secret = 1, fixed_address = 2 };

  Kind kind = Kind::with_secret;
  Secret secret{};
  std::vector<Address> addresses;  // ranks try them in this order

  // Returns a text that is equal for ids with the same server.
  [[nodiscard]] std::string key() const;
};

[[nodiscard]] hcclUniqueId encode(const UniqueId& id);
// Decodes the content of an id, and ignores the bytes after it. Throws Error(hcclInvalidArgument),
// which names the defect.
[[nodiscard]] UniqueId decode(const hcclUniqueId& id);
// Returns whether the id has never been filled: all bytes of its content are zero, or its length
// is.
[[nodiscard]] bool is_empty(const hcclUniqueId& id);

}  // namespace hccl::bootstrap
