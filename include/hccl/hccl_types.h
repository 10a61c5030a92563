// SPDX-License-Identifier: Apache-2.0
// Types of the HCCL API: result codes, data types, reductions, the unique id, the version. Values
// and layouts are fixed: programs built against other releases rely on them.
#ifndef HCCL_HCCL_TYPES_H_
#define HCCL_HCCL_TYPES_H_

#include "synapse_api_types.h"

#include <stddef.h>
#include <stdint.h>

// The version of the HCCL interface.
#define HCCL_MAJOR 2
#define HCCL_MINOR 6
#define HCCL_PATCH 4
#define HCCL_SUFFIX ""
#define HCCL_VERSION_CODE 2604
#define HCCL_VERSION(X, Y, Z) ((X)*1000 + (Y)*100 + (Z))

#define HCCL_UNIQUE_ID_MAX_BYTES 1024

// A communicator handle: one rank's membership in a group of ranks. It is a macro, because programs
// test for the macro with #ifdef and build other types from it.
#define hcclComm_t void*

// Identifies a communicator. The id is plain data, valid in any process and on any host.
// hcclGetUniqueId() creates it on one rank, and the program passes it to the other ranks before
// they join: either the whole structure, or `length` and the first `length` bytes of `internal`.
typedef struct hcclUniqueId {
  uint8_t internal[HCCL_UNIQUE_ID_MAX_BYTES];
  size_t length;
} hcclUniqueId;

// The result codes of the hccl functions. The values differ from NCCL's: translate codes by name.
typedef enum hcclResult_t {
  hcclUninitialized = -1,
  hcclSuccess = 0,
  hcclNoDeviceFound = 1,
  hcclUnsupported = 2,
  hcclOutOfMemory = 3,
  hcclUnhandledSynapseError = 4,
  hcclSystemError = 5,
  hcclInternalError = 6,
  hcclInvalidArgument = 7,
  hcclInvalidUsage = 8,
  hcclSocketError = 9,
  hcclLibfabricError = 10,
  hcclTryAgainError = 11,
  hcclBusy = 12,
  hcclNumResults = 13,  // historical: not the largest value
  hcclStreamError = 14,
  hcclSynapseTerminated = 15,
  hcclPortDown = 16
} hcclResult_t;

// Fixes the underlying type in C++. Otherwise, an enumeration could not hold the bitwise reductions
// of hccl_emulation.h, which need more bits than the enumerators of hcclRedOp_t.
#ifdef __cplusplus
#define HCCL_OF_TYPE_INT : int
#else
#define HCCL_OF_TYPE_INT
#endif

// Reductions. hcclMin is 2 and hcclMax is 3, but ncclMax is 2 and ncclMin is 3: translate
// reductions by name.
typedef enum hcclRedOp_t HCCL_OF_TYPE_INT {
  hcclSum = 0,
  hcclProd = 1,
  hcclMin = 2,
  hcclMax = 3,
  hcclAvg = 4,
  hcclOpNone = 5
} hcclRedOp_t;

// Element types of buffers.
typedef enum hcclDataType_t {
  hcclInt8 = 0,
  hcclChar = 0,
  hcclUint8 = 1,
  hcclInt32 = 2,
  hcclInt = 2,
  hcclUint32 = 3,
  hcclInt64 = 4,
  hcclUint64 = 5,
  hcclFloat16 = 6,
  hcclHalf = 6,
  hcclFloat32 = 7,
  hcclFloat = 7,
  hcclFloat64 = 8,
  hcclDouble = 8,
  hcclBfloat16 = 9,
  hcclNumTypes = 10
} hcclDataType_t;

#endif  // HCCL_HCCL_TYPES_H_
