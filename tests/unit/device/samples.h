// SPDX-License-Identifier: Apache-2.0
// The constant kMiB, and a helper that makes stream commands.
#pragma once

#include "device/stream.h"

#include <cstdint>
#include <utility>

namespace hccl::device {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Returns a command that runs `body` and succeeds.
template <class Body>
[[nodiscard]] auto succeeding(Body body) {
  return [body = std::move(body)] {
    body();
    return Outcome::success;
  };
}

}  // namespace hccl::device
