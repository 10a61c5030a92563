// SPDX-License-Identifier: Apache-2.0
// Pins every enumerator and constant of the Synapse runtime.
#include "abi_values.h"

#include <synapse_api.h>

#include <type_traits>

namespace hccl::test {
namespace {

constexpr Value kSynValues[] = {
    // constants
    {"MAX_NUM_OF_DEVICES_PER_HOST", MAX_NUM_OF_DEVICES_PER_HOST, 16},
    {"STATUS_DESCRIPTION_MAX_SIZE", STATUS_DESCRIPTION_MAX_SIZE, 56},
    {"ENQUEUE_TENSOR_NAME_MAX_SIZE", ENQUEUE_TENSOR_NAME_MAX_SIZE, 1024},
    {"HABANA_DIM_MAX", HABANA_DIM_MAX, 25},
    {"SYN_MAX_TENSOR_DIM", SYN_MAX_TENSOR_DIM, 5},
    {"SYN_GAUDI_MAX_TENSOR_DIM", SYN_GAUDI_MAX_TENSOR_DIM, 8},
    {"MAX_DIMENSIONS_NUM", MAX_DIMENSIONS_NUM, 5},
    {"MAX_LAYOUT_SIZE", MAX_LAYOUT_SIZE, 20},
    {"MAX_TENSOR_NR", MAX_TENSOR_NR, 16},
    {"MAX_USER_PARAMS_SIZE", MAX_USER_PARAMS_SIZE, 128},
    {"SYN_FLAGS_TENSOR_NAME", SYN_FLAGS_TENSOR_NAME, 1},
    {"INVALID_MODULE_ID", INVALID_MODULE_ID, 4294967295},
    {"SYN_INVALID_DEVICE_ID", SYN_INVALID_DEVICE_ID, 4294967295},
    {"INVALID_BATCH_POS", INVALID_BATCH_POS, 4294967295},
    {"INVALID_TENSOR_INDEX", INVALID_TENSOR_INDEX, 4294967295},
    {"INVALID_SECTION_ID", INVALID_SECTION_ID, 4294967295},
    // synStatus
    {"synSuccess", synSuccess, 0},
    {"synInvalidArgument", synInvalidArgument, 1},
    {"synCbFull", synCbFull, 2},
    {"synOutOfHostMemory", synOutOfHostMemory, 3},
    {"synOutOfDeviceMemory", synOutOfDeviceMemory, 4},
    {"synObjectAlreadyInitialized", synObjectAlreadyInitialized, 5},
    {"synObjectNotInitialized", synObjectNotInitialized, 6},
    {"synCommandSubmissionFailure", synCommandSubmissionFailure, 7},
    {"synNoDeviceFound", synNoDeviceFound, 8},
    {"synDeviceTypeMismatch", synDeviceTypeMismatch, 9},
    {"synFailedToInitializeCb", synFailedToInitializeCb, 10},
    {"synFailedToFreeCb", synFailedToFreeCb, 11},
    {"synFailedToMapCb", synFailedToMapCb, 12},
    {"synFailedToUnmapCb", synFailedToUnmapCb, 13},
    {"synFailedToAllocateDeviceMemory", synFailedToAllocateDeviceMemory, 14},
    {"synFailedToFreeDeviceMemory", synFailedToFreeDeviceMemory, 15},
    {"synFailedNotEnoughDevicesFound", synFailedNotEnoughDevicesFound, 16},
    {"synDeviceReset", synDeviceReset, 17},
    {"synUnsupported", synUnsupported, 18},
    {"synWrongParamsFile", synWrongParamsFile, 19},
    {"synDeviceAlreadyAcquired", synDeviceAlreadyAcquired, 20},
    {"synNameIsAlreadyUsed", synNameIsAlreadyUsed, 21},
    {"synBusy", synBusy, 22},
    {"synAllResourcesTaken", synAllResourcesTaken, 23},
    {"synUnavailable", synUnavailable, 24},
    {"synInvalidTensorDimensions", synInvalidTensorDimensions, 25},
    {"synFail", synFail, 26},
    {"synOutOfResources", synOutOfResources, 27},
    {"synUninitialized", synUninitialized, 28},
    {"synAlreadyInitialized", synAlreadyInitialized, 29},
    {"synFailedSectionValidation", synFailedSectionValidation, 30},
    {"synSynapseTerminated", synSynapseTerminated, 31},
    {"synAssertAsync", synAssertAsync, 32},
    {"synInvalidEventHandle", synInvalidEventHandle, 33},
    {"synMappingNotFound", synMappingNotFound, 34},
    {"synFailedDynamicPatching", synFailedDynamicPatching, 35},
    {"synFailedStaticPatching", synFailedStaticPatching, 36},
    {"synFailedToSubmitWorkload", synFailedToSubmitWorkload, 37},
    {"synInvalidSectionsDefinition", synInvalidSectionsDefinition, 38},
    {"synInvalidTensorProperties", synInvalidTensorProperties, 39},
    {"synFailHccl", synFailHccl, 40},
    {"synFailedToCollectTime", synFailedToCollectTime, 41},
    {"synTimeout", synTimeout, 42},
    {"synResourceBadUsage", synResourceBadUsage, 43},
    {"synNullPtr", synNullPtr, 44},
    {"synFailFuser", synFailFuser, 45},
    {"synFailComplexGuid", synFailComplexGuid, 46},
    {"synFailTpcKernels", synFailTpcKernels, 47},
    {"synStatusLast", synStatusLast, 43},
    // synDeviceType
    {"synDeviceGoya2", synDeviceGoya2, 1},
    {"synDeviceGreco", synDeviceGreco, 1},
    {"synDeviceGaudi", synDeviceGaudi, 2},
    {"synDeviceGaudi2", synDeviceGaudi2, 4},
    {"synDeviceGaudi3", synDeviceGaudi3, 5},
    {"synDeviceEmulator", synDeviceEmulator, 6},
    {"synDeviceTypeInvalid", synDeviceTypeInvalid, 7},
    {"synDeviceTypeSize", synDeviceTypeSize, 8},
    // synDeviceAttribute
    {"DEVICE_ATTRIBUTE_SRAM_BASE_ADDRESS", DEVICE_ATTRIBUTE_SRAM_BASE_ADDRESS, 0},
    {"DEVICE_ATTRIBUTE_DRAM_BASE_ADDRESS", DEVICE_ATTRIBUTE_DRAM_BASE_ADDRESS, 1},
    {"DEVICE_ATTRIBUTE_SRAM_SIZE", DEVICE_ATTRIBUTE_SRAM_SIZE, 2},
    {"DEVICE_ATTRIBUTE_DRAM_SIZE", DEVICE_ATTRIBUTE_DRAM_SIZE, 3},
    {"DEVICE_ATTRIBUTE_DRAM_FREE_SIZE", DEVICE_ATTRIBUTE_DRAM_FREE_SIZE, 4},
    {"DEVICE_ATTRIBUTE_TPC_ENABLED_MASK", DEVICE_ATTRIBUTE_TPC_ENABLED_MASK, 5},
    {"DEVICE_ATTRIBUTE_DRAM_ENABLED", DEVICE_ATTRIBUTE_DRAM_ENABLED, 6},
    {"DEVICE_ATTRIBUTE_DEVICE_TYPE", DEVICE_ATTRIBUTE_DEVICE_TYPE, 7},
    {"DEVICE_ATTRIBUTE_CLK_RATE", DEVICE_ATTRIBUTE_CLK_RATE, 8},
    {"DEVICE_ATTRIBUTE_MAX_RMW_SIZE", DEVICE_ATTRIBUTE_MAX_RMW_SIZE, 9},
    {"DEVICE_ATTRIBUTE_STREAMS_TOTAL_MEM_SIZE", DEVICE_ATTRIBUTE_STREAMS_TOTAL_MEM_SIZE, 10},
    {"DEVICE_ATTRIBUTE_ADDRESS_ALIGNMENT_SIZE", DEVICE_ATTRIBUTE_ADDRESS_ALIGNMENT_SIZE, 11},
    {"DEVICE_ATTRIBUTE_MAX_DIMS", DEVICE_ATTRIBUTE_MAX_DIMS, 12},
    // synDmaDir
    {"HOST_TO_DRAM", HOST_TO_DRAM, 0},
    {"DRAM_TO_HOST", DRAM_TO_HOST, 1},
    {"DRAM_TO_DRAM", DRAM_TO_DRAM, 2},
    {"DIRECTION_ENUM_MAX", DIRECTION_ENUM_MAX, 3},
    // synMemFlags
    {"synMemHost", synMemHost, 1},
    {"synMemDevice", synMemDevice, 2},
    // eventCreateFlags
    {"EVENT_COLLECT_TIME", EVENT_COLLECT_TIME, 1},
    // synStreamPriority
    {"synStreamPriorityHigh", synStreamPriorityHigh, 0},
    {"synStreamPriorityLow", synStreamPriorityLow, 1},
    {"synStreamPriorityNotSet", synStreamPriorityNotSet, 2},
    // synStreamType
    {"STREAM_TYPE_COPY_DEVICE_TO_HOST", STREAM_TYPE_COPY_DEVICE_TO_HOST, 0},
    {"STREAM_TYPE_COPY_HOST_TO_DEVICE", STREAM_TYPE_COPY_HOST_TO_DEVICE, 1},
    {"STREAM_TYPE_COPY_DEVICE_TO_DEVICE", STREAM_TYPE_COPY_DEVICE_TO_DEVICE, 2},
    {"STREAM_TYPE_COMPUTE", STREAM_TYPE_COMPUTE, 3},
    {"STREAM_TYPE_NETWORK_COLLECTIVE", STREAM_TYPE_NETWORK_COLLECTIVE, 4},
    {"STREAM_TYPE_MAX_USER_TYPES", STREAM_TYPE_MAX_USER_TYPES, 5},
    {"STREAM_TYPE_RESERVED_1", STREAM_TYPE_RESERVED_1, 5},
    {"STREAM_TYPE_MAX", STREAM_TYPE_MAX, 6},
    // synTraceType
    {"synTraceAll", synTraceAll, 1},
    {"synTraceHost", synTraceHost, 2},
    {"synTraceDevice", synTraceDevice, 3},
    {"synTraceTypeSize", synTraceTypeSize, 4},
    // synTraceFormat
    {"synTraceFormatTEF", synTraceFormatTEF, 1},
    {"synTraceFormatSize", synTraceFormatSize, 2},
};

}  // namespace

TEST(SynapseValues, MatchTheAbi) {
  for (const Value& value : kSynValues) EXPECT_EQ(value.actual, value.expected) << value.name;
}

TEST(SynapseValues, InvalidTensorIdIsAllOnes) {
  static_assert(std::is_same_v<decltype(TENSOR_INVALID_ID), std::uint64_t>);
  EXPECT_EQ(TENSOR_INVALID_ID, ~std::uint64_t{0});
}

TEST(SynapseValues, InvalidIdsHaveTheTypeOfIds) {
  static_assert(std::is_same_v<decltype(INVALID_MODULE_ID), const synModuleId>);
  static_assert(std::is_same_v<decltype(SYN_INVALID_DEVICE_ID), const synDeviceId>);
}

}  // namespace hccl::test
