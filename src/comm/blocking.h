// SPDX-License-Identifier: Apache-2.0
// Implements HCCL_BLOCKING: waits for queued work, so that the call that queued it can report its
// failure.
#pragma once

#include "comm/communicator.h"
#include "device/stream.h"

#include <memory>
#include <span>

namespace hccl::comm {

// Block until all work queued on the streams has run, and defer cancellation of the thread until
// then. If work has failed, throw the fault of a failed communicator: wait_for_streams() checks
// `communicators`, wait_for_stream() all communicators that have used the stream. If none of them
// has failed, throw Error(hcclStreamError) with the reason.
void wait_for_streams(std::span<const std::shared_ptr<device::Stream>> streams,
                      std::span<const std::shared_ptr<Communicator>> communicators);
void wait_for_stream(device::Stream& stream);

}  // namespace hccl::comm
