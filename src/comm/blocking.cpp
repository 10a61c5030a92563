// SPDX-License-Identifier: Apache-2.0
#include "comm/blocking.h"

#include "base/error.h"
#include "base/text.h"

#include <string>

namespace hccl::comm {

void wait_for_streams(std::span<const std::shared_ptr<device::Stream>> streams,
                      std::span<const std::shared_ptr<Communicator>> communicators) {
  bool failed = false;
  std::string first_reason;
  for (const auto& stream : streams) {
    std::string reason;
    if (stream->synchronize(&reason) == device::Outcome::success) continue;
    if (!failed) first_reason = std::move(reason);
    failed = true;
  }
  if (!failed) return;
  for (const auto& communicator : communicators) communicator->throw_if_failed();
  throw Error(hcclStreamError, text("work on the stream failed: ", first_reason));
}

}  // namespace hccl::comm
