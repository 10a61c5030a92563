// SPDX-License-Identifier: Apache-2.0
// Pins the signatures of the graph functions. A C symbol does not encode its parameters, so the
// linker would not detect a change.
#include "signature.h"

#include <synapse_api.h>

namespace hccl::test {
namespace {

static_assert(is<synStatus(synEventHandle*, size_t, const synLaunchTensorInfo*, synRecipeHandle)>(
    synEventMapTensor));
static_assert(
    is<synStatus(synRecipeHandle, uint32_t, uint64_t*)>(synTensorExtExtractExecutionOrder));
static_assert(is<synStatus(synRecipeHandle)>(synRecipeDestroy));
static_assert(is<synStatus(synRecipeHandle, const char*)>(synRecipeSerialize));
static_assert(is<synStatus(synRecipeHandle*, const char*)>(synRecipeDeSerialize));
static_assert(is<synStatus(uint64_t*, const synRecipeAttribute*, unsigned, synRecipeHandle)>(
    synRecipeGetAttribute));
static_assert(is<synStatus(synSectionHandle*, uint64_t, synGraphHandle)>(synSectionCreate));
static_assert(is<synStatus(synSectionHandle, uint64_t)>(synSectionSetGroup));
static_assert(is<synStatus(synSectionHandle, uint64_t*)>(synSectionGetGroup));
static_assert(is<synStatus(synSectionHandle, bool)>(synSectionSetPersistent));
static_assert(is<synStatus(synSectionHandle, bool*)>(synSectionGetPersistent));
static_assert(is<synStatus(synSectionHandle, bool)>(synSectionSetConst));
static_assert(is<synStatus(synSectionHandle, bool*)>(synSectionGetConst));
static_assert(is<synStatus(synRecipeHandle, synSectionId, synSectionProp, uint64_t*)>(
    synRecipeSectionGetProp));
static_assert(is<synStatus(synSectionHandle, bool)>(synSectionSetRMW));
static_assert(is<synStatus(synSectionHandle, bool*)>(synSectionGetRMW));
static_assert(
    is<synStatus(synRecipeHandle, const synSectionId*, size_t)>(synRecipeSectionHostBuffersClear));
static_assert(is<synStatus(synStreamHandle, const synLaunchTensorInfo*, uint32_t, uint64_t,
                           synRecipeHandle, uint32_t)>(synLaunch));
static_assert(
    is<synStatus(synStreamHandle, const synLaunchTensorInfo*, uint32_t, uint64_t, synRecipeHandle,
                 synEventHandle*, uint32_t, uint32_t)>(synLaunchWithExternalEvents));
static_assert(is<synStatus(synStreamHandle, const synLaunchTensorInfoExt*, uint32_t, uint64_t,
                           synRecipeHandle, synEventHandle*, uint32_t, uint32_t)>(
    synLaunchWithExternalEventsExt));
static_assert(is<synStatus(synSectionHandle)>(synSectionDestroy));
static_assert(is<synStatus(uint64_t*, synRecipeHandle)>(synWorkspaceGetSize));
static_assert(is<synStatus(synTensor*, const synTensorDescriptor*, synSectionHandle, uint64_t)>(
    synTensorCreate));
static_assert(is<synStatus(synTensor*, const synTensorDescriptor*)>(synConstTensorCreate));
static_assert(is<synStatus(synRecipeHandle, uint32_t*)>(synTensorRetrieveLaunchAmount));
static_assert(is<synStatus(synRecipeHandle, uint64_t*, uint32_t)>(synTensorRetrieveLaunchIds));
static_assert(is<synStatus(synRecipeHandle, uint32_t, synRetrievedLaunchTensorInfo*)>(
    synTensorRetrieveLaunchInfoById));
static_assert(is<synStatus(synRecipeHandle, uint32_t, synRetrievedLaunchTensorInfoExt*)>(
    synTensorRetrieveLaunchInfoByIdExt));
static_assert(is<synStatus(synRecipeHandle, uint64_t, synRetrievedLaunchTensorInfo*, uint32_t*)>(
    synTensorRetrieveMultiLaunchInfosById));
static_assert(
    is<synStatus(synRecipeHandle, uint32_t, TensorMetadataInfo*)>(synTensorRetrieveInfosByName));
static_assert(is<synStatus(synRecipeHandle, uint32_t, TensorMetadataInfoExt*)>(
    synTensorRetrieveInfosByNameExt));
static_assert(is<synStatus(synRecipeHandle, uint32_t*)>(synTensorRetrievePersistentAmount));
static_assert(is<synStatus(synRecipeHandle, char[][ENQUEUE_TENSOR_NAME_MAX_SIZE], uint32_t)>(
    synTensorRetrieveNames));
static_assert(
    is<synStatus(synRecipeHandle, const char**, uint64_t*, uint32_t)>(synTensorRetrieveIds));
static_assert(is<synStatus(synTensor)>(synTensorDestroy));
static_assert(is<synStatus(synGraphHandle, const synTensor*, const synTensor*, uint32_t, uint32_t,
                           const void*, unsigned, const char*, const char*, const char**,
                           const char**)>(synNodeCreate));
static_assert(is<synStatus(synGraphHandle, const synTensor*, const synTensor*, uint32_t, uint32_t,
                           const void*, unsigned, const char*, const char*, synNodeId*,
                           const char**, const char**)>(synNodeCreateWithId));
static_assert(is<synStatus(synGraphHandle, const char*, synDataType)>(synNodeTypeSetPrecision));
static_assert(is<synStatus(synGraphHandle, const synNodeId*, const synNodeId*, uint32_t, uint32_t)>(
    synNodeDependencySet));
static_assert(is<synStatus(synGraphHandle, synNodeId, bool)>(synNodeSetDeterministic));
static_assert(is<synStatus(synGraphHandle, synNodeId, bool*)>(synNodeGetDeterministic));
static_assert(is<synStatus(synGraphHandle, synNodeId, synRoundingMode)>(synNodeSetRoundingMode));
static_assert(is<synStatus(synGraphHandle, synNodeId, const synUserProgrammability*)>(
    synNodeSetUserProgrammability));
static_assert(is<synStatus(synGraphHandle, synNodeId, synRoundingMode*)>(synNodeGetRoundingMode));
static_assert(
    is<synStatus(synRecipeHandle*, synGraphHandle, const char*, const char*)>(synGraphCompile));
static_assert(is<synStatus(synRecipeHandle*, synGraphHandle, const char*, synErrorHandle*)>(
    synGraphCompileV2));
static_assert(is<synStatus(synGraphHandle*, synDeviceType)>(synGraphCreate));
static_assert(is<synStatus(synGraphHandle, const synGraphAttribute*, const uint64_t*, uint32_t)>(
    synGraphSetAttribute));
static_assert(is<synStatus(synGraphHandle, const synGraphAttribute*, const synGraphAttributeVal*,
                           uint32_t)>(synGraphSetAttributes));
static_assert(is<synStatus(synGraphHandle, const synGraphAttribute*, uint64_t*, uint32_t)>(
    synGraphGetAttribute));
static_assert(is<synStatus(synGraphHandle, const synGraphAttribute*, synGraphAttributeVal*,
                           uint32_t)>(synGraphGetAttributes));
static_assert(is<synStatus(synGraphHandle*, synDeviceType)>(synGraphCreateEager));
static_assert(is<synStatus(synGraphHandle, synGraphHandle*, synTensorHandleMap*, uint32_t*,
                           synNodeHandleMap*, uint32_t*)>(synGraphDuplicate));
static_assert(is<synStatus(synGraphHandle)>(synGraphInferShapes));
static_assert(is<synStatus(synGraphHandle)>(synGraphDestroy));
static_assert(is<synStatus(synGraphHandle, synDeviceType*)>(synGraphGetDeviceType));
static_assert(
    is<synStatus(synTensor*, synGraphHandle, synTensorType, const char*)>(synTensorHandleCreate));
static_assert(is<synStatus(synTensor, synSectionHandle, uint64_t)>(synTensorAssignToSection));
static_assert(is<synStatus(synTensor, uint64_t)>(synTensorSetSectionOffset));
static_assert(is<synStatus(synTensor, void*, uint64_t, synDataType, bool)>(synTensorSetHostPtr));
static_assert(is<synStatus(synTensor, synQuantizationProperty, void*, uint64_t)>(
    synTensorSetQuantizationData));
static_assert(is<synStatus(synTensor, bool)>(synTensorSetExternal));
static_assert(is<synStatus(synTensor, bool)>(synTensorSetMemoryReuse));
static_assert(is<synStatus(synTensor, bool)>(synTensorSetMinimalLatency));
static_assert(
    is<synStatus(synTensor, const synTensorGeometry*, synGeometryType)>(synTensorSetGeometry));
static_assert(is<synStatus(synTensor, const synTensorPermutation*)>(synTensorSetPermutation));
static_assert(is<synStatus(synTensor, synDataType)>(synTensorSetDeviceDataType));
static_assert(
    is<synStatus(synTensor, const synTensorDeviceFullLayout*)>(synTensorSetDeviceFullLayout));
static_assert(is<synStatus(synTensor, const synTensorDeviceLayout*)>(synTensorSetDeviceLayout));
static_assert(is<synStatus(synTensor, int8_t)>(synTensorSetAllowPermutation));
static_assert(is<synStatus(synTensor, int8_t*)>(synTensorGetAllowPermutation));
static_assert(is<synStatus(synTensor, synSectionHandle*, uint64_t*)>(synTensorGetSection));
static_assert(is<synStatus(synTensor, void**, uint64_t*, synDataType*)>(synTensorGetHostPtr));
static_assert(is<synStatus(synTensor, synQuantizationProperty, void*, uint64_t)>(
    synTensorGetQuantizationData));
static_assert(is<synStatus(synTensor, synTensorGeometry*, synGeometryType)>(synTensorGetGeometry));
static_assert(is<synStatus(synTensor, bool*)>(synTensorGetExternal));
static_assert(is<synStatus(synTensor, bool*)>(synTensorGetMinimalLatency));
static_assert(is<synStatus(synTensor, synTensorPermutation*)>(synTensorGetPermutation));
static_assert(is<synStatus(synTensor, synDataType*)>(synTensorGetDeviceDataType));
static_assert(is<synStatus(synTensor, synTensorDeviceLayout*)>(synTensorGetDeviceLayout));
static_assert(is<synStatus(synTensor, synTensorDeviceFullLayout*)>(synTensorGetDeviceFullLayout));
static_assert(is<synStatus(synTensor, uint64_t, char*)>(synTensorGetName));
static_assert(is<synStatus(synTensor, synTensorType*)>(synTensorGetType));
static_assert(
    is<synStatus(synGraphHandle, synNodeId, const void*, unsigned)>(synNodeSetUserParams));
static_assert(is<synStatus(synGraphHandle, synNodeId, void*, unsigned*)>(synNodeGetUserParams));

}  // namespace
}  // namespace hccl::test
