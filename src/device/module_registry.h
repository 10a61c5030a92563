// SPDX-License-Identifier: Apache-2.0
// Who holds which module of this box: a bound abstract socket per module, so there is no file to go
// stale and a dead holder's claim is gone with it.
#pragma once

#include "base/file_descriptor.h"

#include <cstdint>
#include <optional>

namespace hccl::device {

// The claim on module `id`, held until destroyed; nothing if another process (or this one) holds
// it.
[[nodiscard]] std::optional<FileDescriptor> claim_module(std::uint32_t id);

}  // namespace hccl::device
