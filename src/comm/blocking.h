// SPDX-License-Identifier: Apache-2.0
// Waits for queued work under HCCL_BLOCKING, so that the calls that queued it return its failure.
#pragma once

#include "comm/communicator.h"
#include "device/stream.h"

#include <memory>
#include <span>

namespace hccl::comm {

// Block until everything queued on the streams has run; block cancellation of the thread meanwhile.
// If work has failed, throw the fault of one of `communicators` (in wait_for_stream(), of any
// communicator that has used the stream) or, if none has failed, Error(hcclStreamError) with the
// reason.
void wait_for_streams(std::span<const std::shared_ptr<device::Stream>> streams,
                      std::span<const std::shared_ptr<Communicator>> communicators);
void wait_for_stream(device::Stream& stream);

}  // namespace hccl::comm
