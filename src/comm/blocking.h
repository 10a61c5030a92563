// SPDX-License-Identifier: Apache-2.0
// Implements HCCL_BLOCKING: waits for queued work, so that the call that queued the work can report
// a failure of that work.
#pragma once

#include "comm/communicator.h"
#include "device/stream.h"

#include <memory>
#include <span>

namespace hccl::comm {

// Block until all work queued on the streams has run, and defer cancellation of the thread until
// then. If work has failed, wait_for_streams() throws the fault of the first failed communicator in
// `communicators`; wait_for_stream(), if the failed work was a communicator's, throws the fault of
// a failed communicator that has used the stream. If there is no such fault, both throw
// Error(hcclStreamError) with the reason.
void wait_for_streams(std::span<const std::shared_ptr<device::Stream>> streams,
                      std::span<const std::shared_ptr<Communicator>> communicators);
void wait_for_stream(device::Stream& stream);

}  // namespace hccl::comm
