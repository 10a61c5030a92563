// SPDX-License-Identifier: Apache-2.0
// The contents of an hcclUniqueId: the addresses of its root server, and the secret that admits
// ranks.
#pragma once

#include "base/address.h"
#include "base/secret.h"

#include <hccl_types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hccl::bootstrap {

inline constexpr std::size_t kMostAddresses = 8;  // per id

struct UniqueId {
  // with_secret: created by hcclGetUniqueId; its server listens on a port of its own.
  // fixed_address: created from HCCL_COMM_ID. Each rank may create such an id on its own, so the id
  // carries no secret.
  enum class Kind : std::uint8_t { with_secret = 1, fixed_address = 2 };

  Kind kind = Kind::with_secret;
  Secret secret{};
  std::vector<Address> addresses;  // ranks try them in this order

  // Returns a string of bytes, not always printable, that identifies the id's server.
  [[nodiscard]] std::string key() const;
};

[[nodiscard]] hcclUniqueId encode(const UniqueId& id);
// Decodes an id; ignores bytes after its contents. Throws Error(hcclInvalidArgument), whose text
// says what is wrong with the id.
[[nodiscard]] UniqueId decode(const hcclUniqueId& id);
// Returns true if the id was never filled in: its length is zero, or all bytes of `internal` are.
[[nodiscard]] bool is_empty(const hcclUniqueId& id);

}  // namespace hccl::bootstrap
