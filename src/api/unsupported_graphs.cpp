// SPDX-License-Identifier: Apache-2.0
// The tensor, node and graph functions: exported because programs that load the library look all of
// them up; emulated devices run no compute graphs.
#include "api/unsupported.h"

#include <synapse_api.h>

using hccl::api::unsupported_syn;

synStatus SYN_API_CALL synTensorCreate(synTensor*, const synTensorDescriptor*, synSectionHandle,
                                       uint64_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synConstTensorCreate(synTensor*, const synTensorDescriptor*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorHandleCreate(synTensor*, synGraphHandle, synTensorType,
                                             const char*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorDestroy(synTensor) { return unsupported_syn(__func__); }

synStatus SYN_API_CALL synTensorAssignToSection(synTensor, synSectionHandle, uint64_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorSetSectionOffset(synTensor, uint64_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetSection(synTensor, synSectionHandle*, uint64_t*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorSetHostPtr(synTensor, void*, uint64_t, synDataType, bool) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetHostPtr(synTensor, void**, uint64_t*, synDataType*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorSetQuantizationData(synTensor, synQuantizationProperty, void*,
                                                    uint64_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetQuantizationData(synTensor, synQuantizationProperty, void*,
                                                    uint64_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorSetExternal(synTensor, bool) { return unsupported_syn(__func__); }

synStatus SYN_API_CALL synTensorGetExternal(synTensor, bool*) { return unsupported_syn(__func__); }

synStatus SYN_API_CALL synTensorSetMemoryReuse(synTensor, bool) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorSetMinimalLatency(synTensor, bool) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetMinimalLatency(synTensor, bool*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorSetGeometry(synTensor, const synTensorGeometry*, synGeometryType) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetGeometry(synTensor, synTensorGeometry*, synGeometryType) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorSetPermutation(synTensor, const synTensorPermutation*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetPermutation(synTensor, synTensorPermutation*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorSetAllowPermutation(synTensor, int8_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetAllowPermutation(synTensor, int8_t*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorSetDeviceDataType(synTensor, synDataType) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetDeviceDataType(synTensor, synDataType*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorSetDeviceLayout(synTensor, const synTensorDeviceLayout*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetDeviceLayout(synTensor, synTensorDeviceLayout*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorSetDeviceFullLayout(synTensor, const synTensorDeviceFullLayout*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetDeviceFullLayout(synTensor, synTensorDeviceFullLayout*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetName(synTensor, uint64_t, char*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorGetType(synTensor, synTensorType*) {
  return unsupported_syn(__func__);
}

// NOLINTNEXTLINE(readability-function-size): the parameters are the API's
synStatus SYN_API_CALL synNodeCreate(synGraphHandle, const synTensor*, const synTensor*, uint32_t,
                                     uint32_t, const void*, unsigned, const char*, const char*,
                                     const char**, const char**) {
  return unsupported_syn(__func__);
}

// NOLINTNEXTLINE(readability-function-size): the parameters are the API's
synStatus SYN_API_CALL synNodeCreateWithId(synGraphHandle, const synTensor*, const synTensor*,
                                           uint32_t, uint32_t, const void*, unsigned, const char*,
                                           const char*, synNodeId*, const char**, const char**) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synNodeTypeSetPrecision(synGraphHandle, const char*, synDataType) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synNodeDependencySet(synGraphHandle, const synNodeId*, const synNodeId*,
                                            uint32_t, uint32_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synNodeSetDeterministic(synGraphHandle, synNodeId, bool) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synNodeGetDeterministic(synGraphHandle, synNodeId, bool*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synNodeSetRoundingMode(synGraphHandle, synNodeId, synRoundingMode) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synNodeGetRoundingMode(synGraphHandle, synNodeId, synRoundingMode*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synNodeSetUserProgrammability(synGraphHandle, synNodeId,
                                                     const synUserProgrammability*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synNodeSetUserParams(synGraphHandle, synNodeId, const void*, unsigned) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synNodeGetUserParams(synGraphHandle, synNodeId, void*, unsigned*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synGraphCreate(synGraphHandle*, synDeviceType) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synGraphCreateEager(synGraphHandle*, synDeviceType) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synGraphDestroy(synGraphHandle) { return unsupported_syn(__func__); }

synStatus SYN_API_CALL synGraphDuplicate(synGraphHandle, synGraphHandle*, synTensorHandleMap*,
                                         uint32_t*, synNodeHandleMap*, uint32_t*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synGraphInferShapes(synGraphHandle) { return unsupported_syn(__func__); }

synStatus SYN_API_CALL synGraphGetDeviceType(synGraphHandle, synDeviceType*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synGraphSetAttribute(synGraphHandle, const synGraphAttribute*,
                                            const uint64_t*, uint32_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synGraphSetAttributes(synGraphHandle, const synGraphAttribute*,
                                             const synGraphAttributeVal*, uint32_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synGraphGetAttribute(synGraphHandle, const synGraphAttribute*, uint64_t*,
                                            uint32_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synGraphGetAttributes(synGraphHandle, const synGraphAttribute*,
                                             synGraphAttributeVal*, uint32_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synGraphCompile(synRecipeHandle*, synGraphHandle, const char*, const char*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synGraphCompileV2(synRecipeHandle*, synGraphHandle, const char*,
                                         synErrorHandle*) {
  return unsupported_syn(__func__);
}
