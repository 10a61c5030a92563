// SPDX-License-Identifier: Apache-2.0
// The section, recipe and launch functions: exported because programs that load the library look
// all of them up; emulated devices run no compute graphs.
#include "api/unsupported.h"

#include <synapse_api.h>

using hccl::api::unsupported_syn;

synStatus SYN_API_CALL synSectionCreate(synSectionHandle*, uint64_t, synGraphHandle) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synSectionDestroy(synSectionHandle) { return unsupported_syn(__func__); }

synStatus SYN_API_CALL synSectionSetGroup(synSectionHandle, uint64_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synSectionGetGroup(synSectionHandle, uint64_t*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synSectionSetPersistent(synSectionHandle, bool) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synSectionGetPersistent(synSectionHandle, bool*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synSectionSetConst(synSectionHandle, bool) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synSectionGetConst(synSectionHandle, bool*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synSectionSetRMW(synSectionHandle, bool) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synSectionGetRMW(synSectionHandle, bool*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synRecipeDestroy(synRecipeHandle) { return unsupported_syn(__func__); }

synStatus SYN_API_CALL synRecipeSerialize(synRecipeHandle, const char*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synRecipeDeSerialize(synRecipeHandle*, const char*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synRecipeGetAttribute(uint64_t*, const synRecipeAttribute*, unsigned,
                                             synRecipeHandle) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synRecipeSectionGetProp(synRecipeHandle, synSectionId, synSectionProp,
                                               uint64_t*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synRecipeSectionHostBuffersClear(synRecipeHandle, const synSectionId*,
                                                        size_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synWorkspaceGetSize(uint64_t*, synRecipeHandle) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synLaunch(synStreamHandle, const synLaunchTensorInfo*, uint32_t, uint64_t,
                                 synRecipeHandle, uint32_t) {
  return unsupported_syn(__func__);
}

// NOLINTNEXTLINE(readability-function-size): the parameters are the API's
synStatus SYN_API_CALL synLaunchWithExternalEvents(synStreamHandle, const synLaunchTensorInfo*,
                                                   uint32_t, uint64_t, synRecipeHandle,
                                                   synEventHandle*, uint32_t, uint32_t) {
  return unsupported_syn(__func__);
}

// NOLINTNEXTLINE(readability-function-size): the parameters are the API's
synStatus SYN_API_CALL synLaunchWithExternalEventsExt(synStreamHandle,
                                                      const synLaunchTensorInfoExt*, uint32_t,
                                                      uint64_t, synRecipeHandle, synEventHandle*,
                                                      uint32_t, uint32_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synEventMapTensor(synEventHandle*, size_t, const synLaunchTensorInfo*,
                                         synRecipeHandle) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorExtExtractExecutionOrder(synRecipeHandle, uint32_t, uint64_t*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorRetrieveLaunchAmount(synRecipeHandle, uint32_t*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorRetrieveLaunchIds(synRecipeHandle, uint64_t*, uint32_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorRetrieveLaunchInfoById(synRecipeHandle, uint32_t,
                                                       synRetrievedLaunchTensorInfo*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorRetrieveLaunchInfoByIdExt(synRecipeHandle, uint32_t,
                                                          synRetrievedLaunchTensorInfoExt*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorRetrieveMultiLaunchInfosById(synRecipeHandle, uint64_t,
                                                             synRetrievedLaunchTensorInfo*,
                                                             uint32_t*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorRetrieveInfosByName(synRecipeHandle, uint32_t,
                                                    TensorMetadataInfo*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorRetrieveInfosByNameExt(synRecipeHandle, uint32_t,
                                                       TensorMetadataInfoExt*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorRetrievePersistentAmount(synRecipeHandle, uint32_t*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorRetrieveNames(synRecipeHandle, char[][ENQUEUE_TENSOR_NAME_MAX_SIZE],
                                              uint32_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTensorRetrieveIds(synRecipeHandle, const char**, uint64_t*, uint32_t) {
  return unsupported_syn(__func__);
}
