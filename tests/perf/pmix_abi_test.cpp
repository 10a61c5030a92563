// SPDX-License-Identifier: Apache-2.0
// Compares the declarations in pmix_client.h with those in <pmix.h>.
#include "pmix_client.h"

#include <cstddef>
#include <type_traits>

#include <gtest/gtest.h>
#include <pmix.h>

namespace hccl_perf {
namespace {

using pmix_abi::Process;
using pmix_abi::Value;

static_assert(sizeof(Process) == sizeof(pmix_proc_t));
static_assert(offsetof(Process, rank) == offsetof(pmix_proc_t, rank));
static_assert(std::is_same_v<pmix_rank_t, std::uint32_t>);
static_assert(sizeof(Value) == sizeof(pmix_value_t));
static_assert(offsetof(Value, data) == offsetof(pmix_value_t, data));
static_assert(std::is_same_v<decltype(pmix_value_t::type), std::uint16_t>);
static_assert(std::is_same_v<pmix_scope_t, std::uint8_t>);
static_assert(std::is_same_v<pmix_status_t, int>);
static_assert(pmix_abi::kSuccess == PMIX_SUCCESS);
static_assert(pmix_abi::kGlobalScope == PMIX_GLOBAL);
static_assert(pmix_abi::kStringType == PMIX_STRING);
static_assert(pmix_abi::kUint32Type == PMIX_UINT32);
static_assert(pmix_abi::kWildcardRank == PMIX_RANK_WILDCARD);

TEST(PmixAbi, JobSizeKeyMatchesPmix) { EXPECT_STREQ(pmix_abi::kJobSize, PMIX_JOB_SIZE); }

}  // namespace
}  // namespace hccl_perf
