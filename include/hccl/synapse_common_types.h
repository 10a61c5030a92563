// SPDX-License-Identifier: Apache-2.0
// Types shared by the whole Synapse API: status codes, device and data types, tensor geometry, and
// the limits of tensor dimensions. Values and layouts are fixed: programs built against other
// releases rely on them.
#ifndef HCCL_SYNAPSE_COMMON_TYPES_H_
#define HCCL_SYNAPSE_COMMON_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include "synapse_common_types.hpp"
#endif

// Suppresses C compiler warnings about constants that a program does not use.
#if defined(__GNUC__)
#define SYN_MAYBE_UNUSED __attribute__((unused))
#else
#define SYN_MAYBE_UNUSED
#endif

#define HABANA_DIM_MAX 25
#define SYN_MAX_TENSOR_DIM 5
#define SYN_GAUDI_MAX_TENSOR_DIM 8
#define MAX_DIMENSIONS_NUM 5
#define MAX_LAYOUT_SIZE 20
#define MAX_TENSOR_NR 16
#define MAX_USER_PARAMS_SIZE 128
#define SYN_FLAGS_TENSOR_NAME 1
#define TENSOR_INVALID_ID UINT64_MAX
#define INVALID_BATCH_POS UINT32_MAX
#define INVALID_TENSOR_INDEX UINT32_MAX
#define INVALID_SECTION_ID UINT32_MAX

typedef uint64_t TSize;
typedef uint64_t TStride;
typedef int64_t TOffset;
typedef uint64_t tensor_size_t;

// The result codes of the syn functions. synGetErrorString() describes each.
typedef enum synStatus {
  synSuccess = 0,
  synInvalidArgument = 1,
  synCbFull = 2,
  synOutOfHostMemory = 3,
  synOutOfDeviceMemory = 4,
  synObjectAlreadyInitialized = 5,
  synObjectNotInitialized = 6,
  synCommandSubmissionFailure = 7,
  synNoDeviceFound = 8,
  synDeviceTypeMismatch = 9,
  synFailedToInitializeCb = 10,
  synFailedToFreeCb = 11,
  synFailedToMapCb = 12,
  synFailedToUnmapCb = 13,
  synFailedToAllocateDeviceMemory = 14,
  synFailedToFreeDeviceMemory = 15,
  synFailedNotEnoughDevicesFound = 16,
  synDeviceReset = 17,
  synUnsupported = 18,
  synWrongParamsFile = 19,
  synDeviceAlreadyAcquired = 20,
  synNameIsAlreadyUsed = 21,
  synBusy = 22,
  synAllResourcesTaken = 23,
  synUnavailable = 24,
  synInvalidTensorDimensions = 25,
  synFail = 26,
  synOutOfResources = 27,
  synUninitialized = 28,
  synAlreadyInitialized = 29,
  synFailedSectionValidation = 30,
  synSynapseTerminated = 31,
  synAssertAsync = 32,
  synInvalidEventHandle = 33,
  synMappingNotFound = 34,
  synFailedDynamicPatching = 35,
  synFailedStaticPatching = 36,
  synFailedToSubmitWorkload = 37,
  synInvalidSectionsDefinition = 38,
  synInvalidTensorProperties = 39,
  synFailHccl = 40,
  synFailedToCollectTime = 41,
  synTimeout = 42,
  synResourceBadUsage = 43,
  synStatusLast = synResourceBadUsage,  // historical: not the largest value
  synNullPtr = 44,
  synFailFuser = 45,
  synFailComplexGuid = 46,
  synFailTpcKernels = 47
} synStatus;

// Families of accelerators. No family has the value 3.
typedef enum synDeviceType {
  synDeviceGreco = 1,
  synDeviceGoya2 = synDeviceGreco,
  synDeviceGaudi = 2,
  synDeviceGaudi2 = 4,
  synDeviceGaudi3 = 5,
  synDeviceEmulator = 6,
  synDeviceTypeInvalid = 7,  // as a selection: any type
  synDeviceTypeSize = 8
} synDeviceType;

// Element types of tensors, one bit each.
typedef enum synDataType {
  syn_type_na = 0,
  syn_type_fixed = 1 << 0,
  syn_type_int8 = syn_type_fixed,
  syn_type_bf16 = 1 << 1,
  syn_type_single = 1 << 2,
  syn_type_float = syn_type_single,
  syn_type_int16 = 1 << 3,
  syn_type_int32 = 1 << 4,
  syn_type_uint8 = 1 << 5,
  syn_type_int4 = 1 << 6,
  syn_type_uint4 = 1 << 7,
  syn_type_fp16 = 1 << 8,
  syn_type_uint16 = 1 << 9,
  syn_type_uint32 = 1 << 10,
  syn_type_tf32 = 1 << 11,
  syn_type_hb_float = 1 << 12,
  syn_type_fp8_143 = 1 << 13,
  syn_type_fp8_152 = 1 << 14,
  syn_type_int64 = 1 << 15,
  syn_type_uint64 = 1 << 16,
  syn_type_ufp16 = 1 << 17,
  syn_type_packed_nf4 = 1 << 18,
  syn_type_max
} synDataType;

typedef enum synTensorType {
  DATA_TENSOR = 0,
  SHAPE_TENSOR = 1,
  OUTPUT_DESCRIBING_SHAPE_TENSOR = SHAPE_TENSOR,
  INPUT_DESCRIBING_SHAPE_TENSOR_DEPRECATED = 2,
  DATA_TENSOR_DYNAMIC = 3,
  DEVICE_SHAPE_TENSOR = 4,
  HOST_SHAPE_TENSOR = 5,
  HOST_TO_DEVICE_TENSOR = 6,
  TENSOR_TYPE_INVALID = 7,
  TENSOR_TYPE_MAX = TENSOR_TYPE_INVALID
} synTensorType;

// Selects one of a tensor's geometries.
typedef enum synGeometryType {
  synGeometryMinSizes = 0,
  synGeometryMaxSizes = 1,
  synGeometrySizes = synGeometryMaxSizes,
  synGeometryDims = 2
} synGeometryType;

typedef struct synTensorGeometry {
  TSize sizes[HABANA_DIM_MAX];
  uint32_t dims;  // number of valid entries of `sizes`
} synTensorGeometry;

typedef struct synTensorPermutation {
  uint8_t permutation[HABANA_DIM_MAX];
  uint8_t dims;
} synTensorPermutation;

typedef struct synTensorDeviceLayout {
  uint32_t strides[HABANA_DIM_MAX - 1];  // the innermost stride is one element
  synDataType deviceDataType;
} synTensorDeviceLayout;

typedef struct synTensorDeviceFullLayout {
  uint32_t strides[HABANA_DIM_MAX];
  synDataType deviceDataType;
} synTensorDeviceFullLayout;

// The description of a tensor for the graph compiler. The type is incomplete, because emulated
// devices have no graph compiler.
typedef struct synTensorDescriptor synTensorDescriptor;

typedef enum synQuantizationProperty {
  SYN_QUANT_DYNAMIC_RANGE = 0,
  SYN_QUANT_METADATA = 1,
  SYN_FP_QUANT_METADATA = 2,
  SYN_QUANT_FLAGS = 3,
  SYN_QUANT_PC_DYNAMIC_RANGE = 4
} synQuantizationProperty;

typedef enum synRoundingMode {
  synRoundToNearest = 0,
  synRoundToZero = 1,
  synRoundUp = 2,
  synRoundDown = 3,
  synStochasticRounding = 4,
  synRoundAwayFromZero = 5,
  synStochasticRoundingAndNearest = 6
} synRoundingMode;

typedef struct synUserExecOrder {
  unsigned groupId;
  unsigned executionOrderedIndex;
} synUserExecOrder;

typedef struct synUserProgrammability {
  synUserExecOrder* userExecOrder;  // owned by the caller
} synUserProgrammability;

#endif  // HCCL_SYNAPSE_COMMON_TYPES_H_
