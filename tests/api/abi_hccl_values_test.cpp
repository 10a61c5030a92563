// SPDX-License-Identifier: Apache-2.0
// Pins every enumerator and constant of hccl.h and hccl_types.h.
#include "abi_values.h"

#include <hccl.h>

#include <type_traits>

#include <hccl_emulation.h>

namespace hccl::test {
namespace {

constexpr Value kHcclValues[] = {
    // constants
    {"HCCL_P2P_SUPPORTED", HCCL_P2P_SUPPORTED, 1},
    {"HCCL_WRAPPER_USE_STREAM", HCCL_WRAPPER_USE_STREAM, 1},
    {"HCCL_MAJOR", HCCL_MAJOR, 2},
    {"HCCL_MINOR", HCCL_MINOR, 6},
    {"HCCL_PATCH", HCCL_PATCH, 4},
    {"HCCL_VERSION_CODE", HCCL_VERSION_CODE, 2604},
    {"HCCL_VERSION(2, 6, 4)", HCCL_VERSION(2, 6, 4), 2604},
    {"HCCL_VERSION(1 + 1, 3 + 3, 2 + 2)", HCCL_VERSION(1 + 1, 3 + 3, 2 + 2), 2604},
    {"HCCL_UNIQUE_ID_MAX_BYTES", HCCL_UNIQUE_ID_MAX_BYTES, 1024},
    // hcclResult_t
    {"hcclUninitialized", hcclUninitialized, -1},
    {"hcclSuccess", hcclSuccess, 0},
    {"hcclNoDeviceFound", hcclNoDeviceFound, 1},
    {"hcclUnsupported", hcclUnsupported, 2},
    {"hcclOutOfMemory", hcclOutOfMemory, 3},
    {"hcclUnhandledSynapseError", hcclUnhandledSynapseError, 4},
    {"hcclSystemError", hcclSystemError, 5},
    {"hcclInternalError", hcclInternalError, 6},
    {"hcclInvalidArgument", hcclInvalidArgument, 7},
    {"hcclInvalidUsage", hcclInvalidUsage, 8},
    {"hcclSocketError", hcclSocketError, 9},
    {"hcclLibfabricError", hcclLibfabricError, 10},
    {"hcclTryAgainError", hcclTryAgainError, 11},
    {"hcclBusy", hcclBusy, 12},
    {"hcclNumResults", hcclNumResults, 13},
    {"hcclStreamError", hcclStreamError, 14},
    {"hcclSynapseTerminated", hcclSynapseTerminated, 15},
    {"hcclPortDown", hcclPortDown, 16},
    // hcclRedOp_t
    {"hcclSum", hcclSum, 0},
    {"hcclProd", hcclProd, 1},
    {"hcclMin", hcclMin, 2},
    {"hcclMax", hcclMax, 3},
    {"hcclAvg", hcclAvg, 4},
    {"hcclOpNone", hcclOpNone, 5},
    {"hcclEmulationBitAnd", hcclEmulationBitAnd, 64},
    {"hcclEmulationBitOr", hcclEmulationBitOr, 65},
    {"hcclEmulationBitXor", hcclEmulationBitXor, 66},
    // hcclDataType_t
    {"hcclInt8", hcclInt8, 0},
    {"hcclChar", hcclChar, 0},
    {"hcclUint8", hcclUint8, 1},
    {"hcclInt32", hcclInt32, 2},
    {"hcclInt", hcclInt, 2},
    {"hcclUint32", hcclUint32, 3},
    {"hcclInt64", hcclInt64, 4},
    {"hcclUint64", hcclUint64, 5},
    {"hcclFloat16", hcclFloat16, 6},
    {"hcclHalf", hcclHalf, 6},
    {"hcclFloat32", hcclFloat32, 7},
    {"hcclFloat", hcclFloat, 7},
    {"hcclFloat64", hcclFloat64, 8},
    {"hcclDouble", hcclDouble, 8},
    {"hcclBfloat16", hcclBfloat16, 9},
    {"hcclNumTypes", hcclNumTypes, 10},
};

}  // namespace

TEST(HcclValues, MatchTheAbi) {
  for (const Value& value : kHcclValues) EXPECT_EQ(value.actual, value.expected) << value.name;
}

TEST(HcclValues, CommunicatorIsAMacroForAVoidPointer) {
#ifndef hcclComm_t
  FAIL() << "programs test for the macro hcclComm_t";
#endif
  static_assert(std::is_same_v<hcclComm_t, void*>);
  EXPECT_STREQ(HCCL_SUFFIX, "");
}

}  // namespace hccl::test
