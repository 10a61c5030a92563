// SPDX-License-Identifier: Apache-2.0
// Amounts of bytes that the tests of this folder share.
#pragma once

#include "verbs/registration_cache.h"

#include <cstddef>
#include <cstdint>

namespace hccl::verbs {

constexpr std::size_t kKiB = 1024;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGranule = RegistrationCache::kGranuleBytes;
constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

}  // namespace hccl::verbs
