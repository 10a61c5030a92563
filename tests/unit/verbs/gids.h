// SPDX-License-Identifier: Apache-2.0
// GIDs and interfaces as tests write them.
#pragma once

#include "base/interfaces.h"
#include "verbs/gid.h"

#include <algorithm>
#include <string>

namespace hccl::verbs::test {

inline GidBytes v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}

// first:second:...::last
inline GidBytes v6(std::uint8_t first, std::uint8_t second, std::uint8_t last) {
  GidBytes bytes{first, second};
  bytes[15] = last;
  return bytes;
}

inline Interface interface_of(const std::string& name, const GidBytes& address,
                              bool loopback = false) {
  Interface entry;
  entry.name = name;
  entry.address = address_of(address);
  entry.loopback = loopback;
  return entry;
}

}  // namespace hccl::verbs::test
