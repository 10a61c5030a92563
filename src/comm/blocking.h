// SPDX-License-Identifier: Apache-2.0
// Waits for queued work under HCCL_BLOCKING, so that the calls that queue it return its failure
// themselves.
#pragma once

#include "comm/communicator.h"
#include "device/stream.h"

#include <memory>
#include <span>

namespace hccl::comm {

// Block until everything queued on the streams has run; the thread is not cancelled meanwhile. If
// work failed, throw the fault of one of `communicators`, or of any that has used the stream, else
// Error(hcclStreamError) with the reason.
void wait_for_streams(std::span<const std::shared_ptr<device::Stream>> streams,
                      std::span<const std::shared_ptr<Communicator>> communicators);
void wait_for_stream(device::Stream& stream);

}  // namespace hccl::comm
