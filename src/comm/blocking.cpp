// SPDX-License-Identifier: Apache-2.0
#include "comm/blocking.h"

#include "base/cancellation.h"
#include "base/error.h"
#include "base/text.h"

#include <string>

namespace hccl::comm {
namespace {

[[noreturn]] void throw_stream_error(const std::string& reason) {
  throw Error(hcclStreamError, text("work on the stream failed: ", reason));
}

}  // namespace

void wait_for_streams(std::span<const std::shared_ptr<device::Stream>> streams,
                      std::span<const std::shared_ptr<Communicator>> communicators) {
  const CancellationBlock block;
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
  throw_stream_error(first_reason);
}

void wait_for_stream(device::Stream& stream) {
  const CancellationBlock block;
  std::string reason;
  const device::Outcome outcome = stream.synchronize(&reason);
  if (outcome == device::Outcome::success) return;
  if (outcome == device::Outcome::collective_failed) {
    for (const std::uint64_t handle : communicators().handles()) {
      const auto communicator = communicators().pin(handle);
      if (communicator && communicator->has_called_on(stream)) communicator->throw_if_failed();
    }
  }
  throw_stream_error(reason);
}

}  // namespace hccl::comm
