// SPDX-License-Identifier: Apache-2.0
// An amount of bytes that the tests of this folder share.
#pragma once

#include <cstdint>

namespace hccl::device {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

}  // namespace hccl::device
