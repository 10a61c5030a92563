// SPDX-License-Identifier: Apache-2.0
// Work for streams.
#pragma once

#include "device/stream.h"

#include <utility>

namespace hccl::device {

// Returns a command that runs `body` and succeeds.
template <class Body>
[[nodiscard]] auto succeeding(Body body) {
  return [body = std::move(body)] {
    body();
    return Outcome::success;
  };
}

}  // namespace hccl::device
