// SPDX-License-Identifier: Apache-2.0
// How the bytes of a stream between two ranks are protected.
#pragma once

#include <cstdint>

namespace hccl {

// In ascending order of strength.
enum class Protection : std::uint8_t {
  off,
  integrity,  // the receiver detects changes, but anyone can read the bytes
  full,       // only the two ranks can read the bytes, and the receiver detects changes
};

}  // namespace hccl
