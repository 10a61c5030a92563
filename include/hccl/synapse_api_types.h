// SPDX-License-Identifier: Apache-2.0
// Handles, device descriptions, attributes, and the structures of the profiler and graph calls of
// the Synapse API. Values and layouts are fixed, unless a comment says otherwise: programs built
// against other releases rely on them.
#ifndef HCCL_SYNAPSE_API_TYPES_H_
#define HCCL_SYNAPSE_API_TYPES_H_

#include "synapse_common_types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_NUM_OF_DEVICES_PER_HOST 16
#define STATUS_DESCRIPTION_MAX_SIZE 56
#define ENQUEUE_TENSOR_NAME_MAX_SIZE 1024

// Handles. A handle is valid only in the process that created it.
typedef struct EventInterfaceExternal* synEventHandle;
typedef struct InternalStreamHandle* synStreamHandle;
typedef struct ErrorInterfaceExternal* synErrorHandle;
typedef struct InternalRecipeHandle* synRecipeHandle;
typedef struct SectionHandleExternal* synSectionHandle;
typedef struct InternalGraphHandle* synGraphHandle;
typedef struct internalTensor* synTensor;
typedef struct syn_cb_internal* synCommandBuffer;
typedef struct InternalWaitHandle* synWaitHandle;

typedef uint32_t synModuleId;  // index of a device on its host, from 0
typedef uint32_t synDeviceId;  // id of an acquired device within the process
typedef uint32_t synSectionId;
typedef uint64_t synNodeId;  // a node of a compute graph, not a machine

static const synModuleId INVALID_MODULE_ID SYN_MAYBE_UNUSED = 0xFFFFFFFFU;
static const synDeviceId SYN_INVALID_DEVICE_ID SYN_MAYBE_UNUSED = 0xFFFFFFFFU;

// The direction of a copy: determines whether each of its addresses is a host or a device address.
typedef enum synDmaDir {
  HOST_TO_DRAM = 0,
  DRAM_TO_HOST = 1,
  DRAM_TO_DRAM = 2,
  DIRECTION_ENUM_MAX = 3
} synDmaDir;

typedef enum synMemFlags { synMemHost = 1, synMemDevice = 2 } synMemFlags;

typedef enum eventCreateFlags {
  EVENT_COLLECT_TIME = 1  // permits synEventElapsedTime() on this event
} eventCreateFlags;

// No call accepts a priority; the type is kept for programs that refer to it.
typedef enum synStreamPriority {
  synStreamPriorityHigh = 0,
  synStreamPriorityLow = 1,
  synStreamPriorityNotSet = 2
} synStreamPriority;

// The purpose of a stream. Obsolete since streams became generic: synStreamCreate() ignores it.
typedef enum synStreamType {
  STREAM_TYPE_COPY_DEVICE_TO_HOST = 0,
  STREAM_TYPE_COPY_HOST_TO_DEVICE = 1,
  STREAM_TYPE_COPY_DEVICE_TO_DEVICE = 2,
  STREAM_TYPE_COMPUTE = 3,
  STREAM_TYPE_NETWORK_COLLECTIVE = 4,
  STREAM_TYPE_MAX_USER_TYPES = 5,
  STREAM_TYPE_RESERVED_1 = STREAM_TYPE_MAX_USER_TYPES,
  STREAM_TYPE_MAX = 6
} synStreamType;

// Each attribute is a number that describes a device or a type of device; sizes are in bytes.
typedef enum synDeviceAttribute {
  DEVICE_ATTRIBUTE_SRAM_BASE_ADDRESS = 0,
  DEVICE_ATTRIBUTE_DRAM_BASE_ADDRESS = 1,
  DEVICE_ATTRIBUTE_SRAM_SIZE = 2,
  DEVICE_ATTRIBUTE_DRAM_SIZE = 3,
  DEVICE_ATTRIBUTE_DRAM_FREE_SIZE = 4,
  DEVICE_ATTRIBUTE_TPC_ENABLED_MASK = 5,
  DEVICE_ATTRIBUTE_DRAM_ENABLED = 6,
  DEVICE_ATTRIBUTE_DEVICE_TYPE = 7,
  DEVICE_ATTRIBUTE_CLK_RATE = 8,
  DEVICE_ATTRIBUTE_MAX_RMW_SIZE = 9,
  DEVICE_ATTRIBUTE_STREAMS_TOTAL_MEM_SIZE = 10,
  DEVICE_ATTRIBUTE_ADDRESS_ALIGNMENT_SIZE = 11,
  DEVICE_ATTRIBUTE_MAX_DIMS = 12
} synDeviceAttribute;

// The properties of an acquired device that synDeviceGetInfo() writes; sizes are in bytes.
typedef struct synDeviceInfo {
  uint64_t sramBaseAddress;
  uint64_t dramBaseAddress;
  uint32_t sramSize;
  uint64_t dramSize;
  uint64_t tpcEnabledMask;
  uint8_t dramEnabled;
  uint32_t deviceId;
  uint32_t fd;  // all ones: there is no device file
  synDeviceType deviceType;
} synDeviceInfo;

// The properties that synDeviceGetInfoV2() writes: those of synDeviceInfo, and two more.
typedef struct synDeviceInfoV2 {
  uint64_t sramBaseAddress;
  uint64_t dramBaseAddress;
  uint32_t sramSize;
  uint64_t dramSize;
  uint64_t tpcEnabledMask;
  uint8_t dramEnabled;
  uint32_t deviceId;
  uint32_t fd;
  synDeviceType deviceType;
  uint8_t deviceIndex;
  uint64_t globalHbmBaseAddress;
} synDeviceInfoV2;

typedef enum synTraceType {
  synTraceAll = 1,
  synTraceHost = 2,
  synTraceDevice = 3,
  synTraceTypeSize = 4
} synTraceType;

typedef enum synTraceFormat { synTraceFormatTEF = 1, synTraceFormatSize = 2 } synTraceFormat;

// One entry of a trace. Only the size (208 bytes) and the alignment (16) are guaranteed; the fields
// may change.
typedef struct synTraceEvent {
  long double timestamp;  // microseconds
  long double duration;   // microseconds
  const char* name;
  const char* category;
  const char* processName;
  const char* threadName;
  uint32_t processId;
  uint32_t threadId;
  uint32_t engineType;
  uint32_t engineIndex;
  uint64_t eventId;
  char type;  // phase letter of the trace event format
  uint8_t reserved[119];
} synTraceEvent;

// An argument tensor of synLaunch().
typedef struct synLaunchTensorInfo {
  const char* tensorName;
  uint64_t pTensorAddress;
  synTensorType tensorType;
  TSize tensorSize[HABANA_DIM_MAX];
  uint64_t tensorId;
} synLaunchTensorInfo;

typedef struct synLaunchTensorInfoExt {
  const char* tensorName;
  uint64_t pTensorAddress;
  synTensorType tensorType;
  TSize tensorSize[HABANA_DIM_MAX];
  uint64_t tensorId;
} synLaunchTensorInfoExt;

// Describes a tensor that a launch of a recipe uses. Only the size (1536 bytes) is guaranteed.
typedef struct synRetrievedLaunchTensorInfo {
  char tensorName[ENQUEUE_TENSOR_NAME_MAX_SIZE];
  uint64_t tensorId;
  synTensorType tensorType;
  synDataType tensorDataType;
  TSize tensorMaxSize[HABANA_DIM_MAX];
  TSize tensorMinSize[HABANA_DIM_MAX];
  uint64_t tensorOffsetInSection;
  synSectionId tensorSectionId;
  uint32_t tensorDims;
  uint8_t tensorPermutation[HABANA_DIM_MAX];
  uint8_t isInput;
  uint8_t reserved[54];
} synRetrievedLaunchTensorInfo;

typedef struct synRetrievedLaunchTensorInfoExt {
  char tensorName[ENQUEUE_TENSOR_NAME_MAX_SIZE];
  uint64_t tensorId;
  synTensorType tensorType;
  synDataType tensorDataType;
  TSize tensorMaxSize[HABANA_DIM_MAX];
  TSize tensorMinSize[HABANA_DIM_MAX];
  uint64_t tensorOffsetInSection;
  synSectionId tensorSectionId;
  uint32_t tensorDims;
  uint8_t tensorPermutation[HABANA_DIM_MAX];
  uint8_t isInput;
  uint8_t reserved[54];
} synRetrievedLaunchTensorInfoExt;

// Describes a tensor that was looked up in a recipe by its name. Only the size (288 bytes) is
// guaranteed.
typedef struct TensorMetadataInfo {
  const char* tensorName;
  uint64_t tensorId;
  synTensorType tensorType;
  synDataType elementType;
  TSize dimensionSizes[HABANA_DIM_MAX];
  uint64_t offsetInSection;
  double zeroPoint;
  double scale;
  synSectionId sectionId;
  uint32_t dimensions;
  uint16_t batchSize;
  uint8_t isInput;
  uint8_t reserved[29];
} TensorMetadataInfo;

typedef struct TensorMetadataInfoExt {
  const char* tensorName;
  uint64_t tensorId;
  synTensorType tensorType;
  synDataType elementType;
  TSize dimensionSizes[HABANA_DIM_MAX];
  uint64_t offsetInSection;
  double zeroPoint;
  double scale;
  synSectionId sectionId;
  uint32_t dimensions;
  uint16_t batchSize;
  uint8_t isInput;
  uint8_t reserved[29];
} TensorMetadataInfoExt;

typedef enum synSectionProp { SECTION_SIZE = 0, SECTION_DATA = 1, IS_CONST = 2 } synSectionProp;

typedef enum synRecipeAttribute {
  RECIPE_ATTRIBUTE_WORKSPACE_SIZE = 0,
  RECIPE_ATTRIBUTE_NUM_PERSISTENT_TENSORS = 1,
  RECIPE_ATTRIBUTE_HOST_MEM_SIZE = 2,
  RECIPE_ATTRIBUTE_NUM_EXTERNAL_TENSORS = 3,
  RECIPE_ATTRIBUTE_PERSISTENT_TENSORS_SIZE = 4,
  RECIPE_ATTRIBUTE_CONST_SECTIONS_SIZE = 5,
  RECIPE_ATTRIBUTE_DEVICE_MEMORY_SIZE = 6,
  RECIPE_ATTRIBUTE_MAX = 7
} synRecipeAttribute;

typedef enum synGraphAttribute {
  GRAPH_ATTRIBUTE_INFERENCE = 0,
  GRAPH_ATTRIBUTE_QUANTIZATION = 1,
  GRAPH_ATTRIBUTE_BACKOFF_FACTOR = 2,
  GRAPH_ATTRIBUTE_IS_HW_ALIGNED_SCALE = 3,
  GRAPH_ATTRIBUTE_SCALE_METHOD_HASH_ID = 4,
  GRAPH_ATTRIBUTE_MAX = 5
} synGraphAttribute;

typedef union synGraphAttributeVal {
  uint64_t iAttrVal;
  double dAttrVal;
} synGraphAttributeVal;

typedef struct synTensorHandleMap {
  synTensor origHandle;
  synTensor newHandle;
} synTensorHandleMap;

typedef struct synNodeHandleMap {
  synNodeId origHandle;
  synNodeId newHandle;
} synNodeHandleMap;

#endif  // HCCL_SYNAPSE_API_TYPES_H_
