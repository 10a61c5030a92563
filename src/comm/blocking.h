// SPDX-License-Identifier: Apache-2.0
// Implements HCCL_BLOCKING: waits for queued work, so that the call that queued it can report its
// failure.
#pragma once

#include "comm/communicator.h"
#include "device/stream.h"

#include <memory>
#include <span>

namespace hccl::comm {

// Block until all work queued on the streams has run. Meanwhile, defer cancellation of the thread.
// If work has failed, throw the fault of a failed communicator. wait_for_streams() looks for that
// communicator in `communicators`; wait_for_stream() looks among all communicators that have used
// the stream. If none has failed, throw Error(hcclStreamError) with the reason.
void wait_for_streams(std::span<const std::shared_ptr<device::Stream>> streams,
                      std::span<const std::shared_ptr<Communicator>> communicators);
void wait_for_stream(device::Stream& stream);

}  // namespace hccl::comm
