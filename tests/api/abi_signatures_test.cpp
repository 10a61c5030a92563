// SPDX-License-Identifier: Apache-2.0
// Pins the signatures of the HCCL and runtime functions. A C symbol does not encode its parameters,
// so the linker would not detect a change.
#include "signature.h"

#include <hccl.h>
#include <synapse_api.h>

namespace hccl::test {
namespace {

// HCCL
static_assert(is<hcclResult_t(int*)>(hcclGetVersion));
static_assert(is<hcclResult_t(hcclUniqueId*)>(hcclGetUniqueId));
static_assert(is<hcclResult_t(hcclComm_t*, int, hcclUniqueId, int)>(hcclCommInitRank));
static_assert(is<hcclResult_t(hcclComm_t*, int, const int*)>(hcclCommInitAll));
static_assert(is<hcclResult_t(hcclComm_t)>(hcclCommFinalize));
static_assert(is<hcclResult_t(hcclComm_t)>(hcclCommDestroy));
static_assert(is<hcclResult_t(hcclComm_t)>(hcclCommAbort));
static_assert(is<const char*(hcclResult_t)>(hcclGetErrorString));
static_assert(is<const char*()>(hcclGetLastErrorMessage));
static_assert(is<hcclResult_t(hcclComm_t, hcclResult_t*)>(hcclCommGetAsyncError));
static_assert(is<const char*(hcclComm_t)>(hcclCommGetAsyncErrorMessage));
static_assert(is<hcclResult_t(hcclComm_t, int*)>(hcclCommCount));
static_assert(is<hcclResult_t(hcclComm_t, int*)>(hcclCommSynDevice));
static_assert(is<hcclResult_t(hcclComm_t, int*)>(hcclCommUserRank));
static_assert(is<int(uint64_t, uint64_t, int*)>(hcclLookupDMABuff));
static_assert(is<hcclResult_t(void*, void*)>(hcclDeviceInit));
static_assert(is<hcclResult_t(const void*, void*, size_t, hcclDataType_t, hcclRedOp_t, int,
                              hcclComm_t, void*)>(hcclReduce));
static_assert(is<hcclResult_t(void*, size_t, hcclDataType_t, int, hcclComm_t, void*)>(hcclBcast));
static_assert(is<hcclResult_t(const void*, void*, size_t, hcclDataType_t, int, hcclComm_t, void*)>(
    hcclBroadcast));
static_assert(is<hcclResult_t(const void*, void*, size_t, hcclDataType_t, hcclRedOp_t, hcclComm_t,
                              void*)>(hcclAllReduce));
static_assert(is<hcclResult_t(const void*, void*, size_t, hcclDataType_t, hcclRedOp_t, hcclComm_t,
                              void*)>(hcclReduceScatter));
static_assert(
    is<hcclResult_t(const void*, void*, size_t, hcclDataType_t, hcclComm_t, void*)>(hcclAllGather));
static_assert(
    is<hcclResult_t(const void*, void*, size_t, hcclDataType_t, hcclComm_t, void*)>(hcclAlltoAll));
static_assert(is<hcclResult_t(hcclComm_t, void*)>(hcclBarrier));
static_assert(
    is<hcclResult_t(const void*, size_t, hcclDataType_t, int, hcclComm_t, void*)>(hcclSend));
static_assert(is<hcclResult_t(void*, size_t, hcclDataType_t, int, hcclComm_t, void*)>(hcclRecv));
static_assert(is<hcclResult_t()>(hcclGroupStart));
static_assert(is<hcclResult_t()>(hcclGroupEnd));

// Synapse runtime
static_assert(is<synStatus()>(synInitialize));
static_assert(is<synStatus()>(synDestroy));
static_assert(is<synStatus(synDeviceId*, synModuleId)>(synDeviceAcquireByModuleId));
static_assert(is<synStatus(synDeviceId*, const char*)>(synDeviceAcquire));
static_assert(is<synStatus(synDeviceId*, synDeviceType)>(synDeviceAcquireByDeviceType));
static_assert(is<synStatus(synDeviceId)>(synDeviceRelease));
static_assert(is<synStatus(uint32_t*)>(synDeviceGetCount));
static_assert(is<synStatus(uint32_t*, synDeviceType)>(synDeviceGetCountByDeviceType));
static_assert(is<synStatus(uint32_t*)>(synDeviceCount));
static_assert(is<synStatus(uint32_t*, uint32_t*)>(synDeviceGetModuleIDs));
static_assert(is<synStatus(synDeviceId, uint64_t*, uint64_t*)>(synDeviceGetMemoryInfo));
static_assert(is<synStatus(synDeviceId, synDeviceInfo*)>(synDeviceGetInfo));
static_assert(is<synStatus(synDeviceId, synDeviceInfoV2*)>(synDeviceGetInfoV2));
static_assert(is<synStatus(uint64_t*, const synDeviceAttribute*, unsigned, synDeviceId)>(
    synDeviceGetAttribute));
static_assert(is<synStatus(uint64_t*, const synDeviceAttribute*, unsigned, synModuleId)>(
    synDeviceGetAttributeByModuleId));
static_assert(is<synStatus(uint64_t*, const synDeviceAttribute*, unsigned, synDeviceType)>(
    synDeviceTypeGetAttribute));
static_assert(is<synStatus(char*, int, synDeviceId)>(synDeviceGetName));
static_assert(is<synStatus(char*, int, synDeviceId)>(synDeviceGetPCIBusId));
static_assert(is<synStatus(char*, int)>(synDriverGetVersion));
static_assert(is<synStatus(synDeviceId)>(synDeviceSynchronize));
static_assert(is<synStatus(synDeviceId, uint64_t, uint64_t, uint32_t, uint64_t*)>(synDeviceMalloc));
static_assert(is<synStatus(synDeviceId, uint64_t, uint32_t)>(synDeviceFree));
static_assert(is<synStatus(synDeviceId, uint64_t, uint32_t, void**)>(synHostMalloc));
static_assert(is<synStatus(synDeviceId, const void*, uint32_t)>(synHostFree));
static_assert(is<synStatus(synDeviceId, uint64_t, const void*)>(synHostMap));
static_assert(is<synStatus(synDeviceId, const void*)>(synHostUnmap));
static_assert(
    is<synStatus(synStreamHandle, uint64_t, uint64_t, uint64_t, synDmaDir)>(synMemCopyAsync));
static_assert(is<synStatus(synStreamHandle, const uint64_t*, const uint64_t*, const uint64_t*,
                           synDmaDir, uint64_t)>(synMemCopyAsyncMultiple));
static_assert(is<synStatus(uint64_t, unsigned char, size_t, synStreamHandle)>(synMemsetD8Async));
static_assert(is<synStatus(uint64_t, uint16_t, size_t, synStreamHandle)>(synMemsetD16Async));
static_assert(is<synStatus(uint64_t, uint32_t, size_t, synStreamHandle)>(synMemsetD32Async));
static_assert(is<synStatus(synStreamHandle*, synDeviceId, uint32_t)>(synStreamCreateGeneric));
static_assert(
    is<synStatus(synStreamHandle*, synDeviceId, synStreamType, uint32_t)>(synStreamCreate));
static_assert(is<synStatus(synStreamHandle)>(synStreamDestroy));
static_assert(is<synStatus(synStreamHandle)>(synStreamSynchronize));
static_assert(is<synStatus(synStreamHandle)>(synStreamQuery));
static_assert(is<synStatus(synStreamHandle, synEventHandle, uint32_t)>(synStreamWaitEvent));
static_assert(is<synStatus(synEventHandle*, synDeviceId, uint32_t)>(synEventCreate));
static_assert(is<synStatus(synEventHandle)>(synEventDestroy));
static_assert(is<synStatus(synEventHandle, synStreamHandle)>(synEventRecord));
static_assert(is<synStatus(synEventHandle)>(synEventQuery));
static_assert(is<synStatus(synEventHandle)>(synEventSynchronize));
static_assert(is<synStatus(uint64_t*, synEventHandle, synEventHandle)>(synEventElapsedTime));
static_assert(is<synStatus(synDeviceId, synStreamHandle, uint64_t)>(synStreamSetAffinity));
static_assert(is<synStatus(synDeviceId, synStreamHandle, uint64_t*)>(synStreamGetAffinity));
static_assert(is<synStatus(synDeviceId, uint64_t*)>(synDeviceGetAffinityMaskRange));
static_assert(is<synStatus(synDeviceId, uint64_t*)>(synDeviceGetNextStreamAffinity));
static_assert(is<synStatus(const char*, char*, uint64_t)>(synConfigurationGet));
static_assert(is<synStatus(const char*, const char*)>(synConfigurationSet));
static_assert(is<synStatus(synStatus, char*, size_t)>(synStatusGetBriefDescription));
static_assert(is<synStatus()>(synGetLastError));
static_assert(is<synStatus(synErrorHandle)>(synErrorDestroy));
static_assert(is<synStatus(synErrorHandle, synStatus*)>(synErrorGetStatus));
static_assert(is<synStatus(synErrorHandle, size_t*)>(synErrorGetMessageLength));
static_assert(is<synStatus(synErrorHandle, char*, size_t)>(synErrorGetMessage));
static_assert(is<synStatus(const char*, uint64_t)>(synDumpStateAndTerminate));
static_assert(is<synStatus(uint64_t, uint64_t)>(synUpdateMemoryConsumption));
static_assert(is<synStatus(synDeviceId, uint32_t*)>(synProfilerQueryRequiredMemory));
static_assert(is<synStatus(synDeviceId, void*)>(synProfilerSetUserBuffer));
static_assert(is<synStatus(synTraceType, synDeviceId)>(synProfilerStart));
static_assert(is<synStatus(synTraceType, synDeviceId)>(synProfilerStop));
static_assert(is<synStatus(synTraceType, synDeviceId, synTraceFormat, void*, size_t*, size_t*)>(
    synProfilerGetTrace));
static_assert(is<synStatus(uint64_t*)>(synProfilerGetCurrentTimeNS));
static_assert(is<synStatus(const char*, uint64_t)>(synProfilerAddCustomMeasurement));
static_assert(is<synStatus(const char*, uint64_t, const char**, size_t)>(
    synProfilerAddCustomMeasurementArgs));
static_assert(is<synStatus(const char*, uint64_t, const char**, size_t, const char*)>(
    synProfilerAddCustomMeasurementArgsAndThread));
static_assert(is<synStatus(const char*, uint64_t, uint64_t, const char**, size_t)>(
    synProfilerAddCustomEvent));
static_assert(is<synStatus(uint32_t*)>(synTPCLibraryGetVersionSize));
static_assert(is<synStatus(const char**, uint32_t*)>(synTPCLibraryGetVersions));
static_assert(is<const char*(synStatus)>(synGetErrorString));
static_assert(is<const char*()>(synGetLastErrorMessage));

}  // namespace
}  // namespace hccl::test
