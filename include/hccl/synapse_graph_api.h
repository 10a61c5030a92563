// SPDX-License-Identifier: Apache-2.0
// The graph part of the Synapse API: sections, tensors, nodes, graphs, recipes and their launch.
// These functions exist because programs look them up when they load the library. Emulated devices
// run no compute graphs, so each function returns synUnsupported and sets the text of
// synGetLastErrorMessage(). Include <synapse_api.h>, which includes this header.
#ifndef HCCL_SYNAPSE_GRAPH_API_H_
#define HCCL_SYNAPSE_GRAPH_API_H_

#include "synapse_api.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

// ---- Sections: ranges of device memory that hold a recipe's tensors ---------------------------

synStatus SYN_API_CALL synSectionCreate(synSectionHandle* sectionHandle, uint64_t sectionDescriptor,
                                        const synGraphHandle graph);
synStatus SYN_API_CALL synSectionDestroy(synSectionHandle sectionHandle);
synStatus SYN_API_CALL synSectionSetGroup(synSectionHandle sectionHandle, uint64_t sectionGroup);
synStatus SYN_API_CALL synSectionGetGroup(synSectionHandle sectionHandle, uint64_t* sectionGroup);
synStatus SYN_API_CALL synSectionSetPersistent(synSectionHandle sectionHandle,
                                               bool sectionIsPersistent);
synStatus SYN_API_CALL synSectionGetPersistent(synSectionHandle sectionHandle,
                                               bool* sectionIsPersistent);
synStatus SYN_API_CALL synSectionSetConst(synSectionHandle sectionHandle, bool sectionIsConst);
synStatus SYN_API_CALL synSectionGetConst(synSectionHandle sectionHandle, bool* sectionIsConst);
synStatus SYN_API_CALL synSectionSetRMW(synSectionHandle sectionHandle, bool sectionIsRmw);
synStatus SYN_API_CALL synSectionGetRMW(synSectionHandle sectionHandle, bool* sectionIsRmw);

// ---- Recipes: compiled graphs -----------------------------------------------------------------

synStatus SYN_API_CALL synRecipeDestroy(synRecipeHandle recipeHandle);
synStatus SYN_API_CALL synRecipeSerialize(const synRecipeHandle recipeHandle,
                                          const char* recipeFileName);
synStatus SYN_API_CALL synRecipeDeSerialize(synRecipeHandle* pRecipeHandle,
                                            const char* recipeFileName);
synStatus SYN_API_CALL synRecipeGetAttribute(uint64_t* retVal, const synRecipeAttribute* recipeAttr,
                                             const unsigned querySize,
                                             const synRecipeHandle recipeHandle);
synStatus SYN_API_CALL synRecipeSectionGetProp(const synRecipeHandle recipeHandle,
                                               const synSectionId sectionId,
                                               const synSectionProp prop, uint64_t* propertyPtr);
synStatus SYN_API_CALL synRecipeSectionHostBuffersClear(synRecipeHandle recipeHandle,
                                                        const synSectionId* sectionIds,
                                                        size_t numOfSections);
synStatus SYN_API_CALL synWorkspaceGetSize(uint64_t* pWorkspaceSize,
                                           const synRecipeHandle recipeHandle);

// ---- Launch: running a recipe on a stream -----------------------------------------------------

synStatus SYN_API_CALL synLaunch(const synStreamHandle streamHandle,
                                 const synLaunchTensorInfo* launchTensorsInfo,
                                 const uint32_t numberOfTensors, uint64_t pWorkspace,
                                 const synRecipeHandle recipeHandle, uint32_t flags);
synStatus SYN_API_CALL synLaunchWithExternalEvents(
    const synStreamHandle streamHandle, const synLaunchTensorInfo* launchTensorsInfo,
    const uint32_t numberOfTensors, uint64_t pWorkspace, const synRecipeHandle recipeHandle,
    synEventHandle* eventHandleList, const uint32_t numberOfEvents, uint32_t flags);
synStatus SYN_API_CALL synLaunchWithExternalEventsExt(
    const synStreamHandle streamHandle, const synLaunchTensorInfoExt* launchTensorsInfo,
    const uint32_t numberOfTensors, uint64_t pWorkspace, const synRecipeHandle recipeHandle,
    synEventHandle* eventHandleList, const uint32_t numberOfEvents, uint32_t flags);
synStatus SYN_API_CALL synEventMapTensor(synEventHandle* eventHandle, size_t numOfEvents,
                                         const synLaunchTensorInfo* launchTensorsInfo,
                                         const synRecipeHandle recipeHandle);
synStatus SYN_API_CALL synTensorExtExtractExecutionOrder(const synRecipeHandle recipeHandle,
                                                         uint32_t numOfExternalTensors,
                                                         uint64_t* tensorIds);

// ---- The tensors of a recipe ------------------------------------------------------------------

synStatus SYN_API_CALL synTensorRetrieveLaunchAmount(const synRecipeHandle recipeHandle,
                                                     uint32_t* numOfTensors);
synStatus SYN_API_CALL synTensorRetrieveLaunchIds(const synRecipeHandle recipeHandle,
                                                  uint64_t* tensorsIds,
                                                  const uint32_t numOfTensors);
synStatus SYN_API_CALL
synTensorRetrieveLaunchInfoById(const synRecipeHandle recipeHandle, const uint32_t numOfTensors,
                                synRetrievedLaunchTensorInfo* tensorsLaunchInfo);
synStatus SYN_API_CALL
synTensorRetrieveLaunchInfoByIdExt(const synRecipeHandle recipeHandle, const uint32_t numOfTensors,
                                   synRetrievedLaunchTensorInfoExt* tensorsLaunchInfo);
synStatus SYN_API_CALL synTensorRetrieveMultiLaunchInfosById(
    const synRecipeHandle recipeHandle, const uint64_t tensorId,
    synRetrievedLaunchTensorInfo* tensorLaunchInfos, uint32_t* numOfInfos);
synStatus SYN_API_CALL synTensorRetrieveInfosByName(const synRecipeHandle recipeHandle,
                                                    const uint32_t numOfTensors,
                                                    TensorMetadataInfo* tensorsMetadataInfo);
synStatus SYN_API_CALL synTensorRetrieveInfosByNameExt(const synRecipeHandle recipeHandle,
                                                       const uint32_t numOfTensors,
                                                       TensorMetadataInfoExt* tensorsMetadataInfo);
synStatus SYN_API_CALL synTensorRetrievePersistentAmount(const synRecipeHandle recipeHandle,
                                                         uint32_t* numOfTensors);
synStatus SYN_API_CALL synTensorRetrieveNames(const synRecipeHandle recipeHandle,
                                              char tensorsName[][ENQUEUE_TENSOR_NAME_MAX_SIZE],
                                              const uint32_t numOfTensors);
synStatus SYN_API_CALL synTensorRetrieveIds(const synRecipeHandle recipeHandle,
                                            const char** tensorNames, uint64_t* tensorIds,
                                            const uint32_t numOfTensors);

// ---- Tensors ----------------------------------------------------------------------------------

synStatus SYN_API_CALL synTensorCreate(synTensor* pTensor, const synTensorDescriptor* descriptor,
                                       const synSectionHandle pSectionHandle,
                                       const uint64_t sectionOffset);
synStatus SYN_API_CALL synConstTensorCreate(synTensor* pTensor,
                                            const synTensorDescriptor* descriptor);
synStatus SYN_API_CALL synTensorHandleCreate(synTensor* tensor, synGraphHandle graph,
                                             synTensorType type, const char* tensorName);
synStatus SYN_API_CALL synTensorDestroy(const synTensor tensor);
synStatus SYN_API_CALL synTensorAssignToSection(synTensor tensor, synSectionHandle section,
                                                uint64_t byteOffset);
synStatus SYN_API_CALL synTensorSetSectionOffset(synTensor tensor, uint64_t byteOffset);
synStatus SYN_API_CALL synTensorGetSection(synTensor tensor, synSectionHandle* section,
                                           uint64_t* byteOffset);
synStatus SYN_API_CALL synTensorSetHostPtr(synTensor tensor, void* hostPtr, uint64_t size,
                                           synDataType dataType, bool copyBuffer);
synStatus SYN_API_CALL synTensorGetHostPtr(synTensor tensor, void** hostPtr, uint64_t* size,
                                           synDataType* dataType);
synStatus SYN_API_CALL synTensorSetQuantizationData(synTensor tensor, synQuantizationProperty prop,
                                                    void* propVal, uint64_t propSize);
synStatus SYN_API_CALL synTensorGetQuantizationData(synTensor tensor, synQuantizationProperty prop,
                                                    void* propVal, uint64_t propSize);
synStatus SYN_API_CALL synTensorSetExternal(synTensor tensor, bool isExternal);
synStatus SYN_API_CALL synTensorGetExternal(synTensor tensor, bool* isExternal);
synStatus SYN_API_CALL synTensorSetMemoryReuse(synTensor tensor, bool reuse);
synStatus SYN_API_CALL synTensorSetMinimalLatency(synTensor tensor, bool minimalLatency);
synStatus SYN_API_CALL synTensorGetMinimalLatency(synTensor tensor, bool* minimalLatency);
synStatus SYN_API_CALL synTensorSetGeometry(synTensor tensor, const synTensorGeometry* geometry,
                                            synGeometryType geometryType);
synStatus SYN_API_CALL synTensorGetGeometry(const synTensor tensor, synTensorGeometry* geometry,
                                            synGeometryType geometryType);
synStatus SYN_API_CALL synTensorSetPermutation(synTensor tensor,
                                               const synTensorPermutation* permutation);
synStatus SYN_API_CALL synTensorGetPermutation(const synTensor tensor,
                                               synTensorPermutation* permutation);
synStatus SYN_API_CALL synTensorSetAllowPermutation(synTensor tensor, int8_t allow);
synStatus SYN_API_CALL synTensorGetAllowPermutation(synTensor tensor, int8_t* allow);
synStatus SYN_API_CALL synTensorSetDeviceDataType(synTensor tensor, synDataType deviceDataType);
synStatus SYN_API_CALL synTensorGetDeviceDataType(synTensor tensor, synDataType* deviceDataType);
synStatus SYN_API_CALL synTensorSetDeviceLayout(synTensor tensor,
                                                const synTensorDeviceLayout* layout);
synStatus SYN_API_CALL synTensorGetDeviceLayout(const synTensor tensor,
                                                synTensorDeviceLayout* layout);
synStatus SYN_API_CALL synTensorSetDeviceFullLayout(synTensor tensor,
                                                    const synTensorDeviceFullLayout* layout);
synStatus SYN_API_CALL synTensorGetDeviceFullLayout(const synTensor tensor,
                                                    synTensorDeviceFullLayout* layout);
synStatus SYN_API_CALL synTensorGetName(const synTensor tensor, const uint64_t size, char* name);
synStatus SYN_API_CALL synTensorGetType(const synTensor tensor, synTensorType* type);

// ---- Nodes: the operations of a graph ---------------------------------------------------------

synStatus SYN_API_CALL synNodeCreate(const synGraphHandle graphHandle,
                                     const synTensor* pInputsTensorList,
                                     const synTensor* pOutputsTensorList,
                                     const uint32_t numberInputs, const uint32_t numberOutputs,
                                     const void* pUserParams, const unsigned paramsSize,
                                     const char* pGuid, const char* pName,
                                     const char** inputLayouts, const char** outputLayouts);
synStatus SYN_API_CALL synNodeCreateWithId(
    const synGraphHandle graphHandle, const synTensor* pInputsTensorList,
    const synTensor* pOutputsTensorList, const uint32_t numberInputs, const uint32_t numberOutputs,
    const void* pUserParams, const unsigned paramsSize, const char* pGuid, const char* pName,
    synNodeId* nodeUniqueId, const char** inputLayouts, const char** outputLayouts);
synStatus SYN_API_CALL synNodeTypeSetPrecision(const synGraphHandle graphHandle, const char* guid,
                                               synDataType precision);
synStatus SYN_API_CALL synNodeDependencySet(const synGraphHandle graphHandle,
                                            const synNodeId* pBlockingNodesIdList,
                                            const synNodeId* pBlockedNodesIdList,
                                            const uint32_t numberBlocking,
                                            const uint32_t numberBlocked);
synStatus SYN_API_CALL synNodeSetDeterministic(const synGraphHandle graphHandle,
                                               const synNodeId nodeId, const bool useDeterministic);
synStatus SYN_API_CALL synNodeGetDeterministic(const synGraphHandle graphHandle,
                                               const synNodeId nodeId, bool* pUseDeterministic);
synStatus SYN_API_CALL synNodeSetRoundingMode(const synGraphHandle graphHandle,
                                              const synNodeId nodeId,
                                              const synRoundingMode roundingMode);
synStatus SYN_API_CALL synNodeGetRoundingMode(const synGraphHandle graphHandle,
                                              const synNodeId nodeId,
                                              synRoundingMode* pRoundingMode);
synStatus SYN_API_CALL
synNodeSetUserProgrammability(const synGraphHandle graphHandle, const synNodeId nodeId,
                              const synUserProgrammability* userProgrammability);
synStatus SYN_API_CALL synNodeSetUserParams(const synGraphHandle graphHandle,
                                            const synNodeId nodeId, const void* userParams,
                                            const unsigned paramsSize);
synStatus SYN_API_CALL synNodeGetUserParams(const synGraphHandle graphHandle,
                                            const synNodeId nodeId, void* userParams,
                                            unsigned* paramsSize);

// ---- Graphs -----------------------------------------------------------------------------------

synStatus SYN_API_CALL synGraphCreate(synGraphHandle* pGraphHandle, const synDeviceType deviceType);
synStatus SYN_API_CALL synGraphCreateEager(synGraphHandle* pGraphHandle,
                                           const synDeviceType deviceType);
synStatus SYN_API_CALL synGraphDestroy(const synGraphHandle graphHandle);
synStatus SYN_API_CALL synGraphDuplicate(synGraphHandle graphHandle, synGraphHandle* newGraphHandle,
                                         synTensorHandleMap* tensorsMap, uint32_t* numTensors,
                                         synNodeHandleMap* nodesMap, uint32_t* numNodes);
synStatus SYN_API_CALL synGraphInferShapes(const synGraphHandle graphHandle);
synStatus SYN_API_CALL synGraphGetDeviceType(const synGraphHandle graphHandle,
                                             synDeviceType* deviceType);
synStatus SYN_API_CALL synGraphSetAttribute(synGraphHandle graphHandle,
                                            const synGraphAttribute* attributes,
                                            const uint64_t* values, const uint32_t size);
synStatus SYN_API_CALL synGraphSetAttributes(synGraphHandle graphHandle,
                                             const synGraphAttribute* attributes,
                                             const synGraphAttributeVal* values,
                                             const uint32_t size);
synStatus SYN_API_CALL synGraphGetAttribute(synGraphHandle graphHandle,
                                            const synGraphAttribute* attributes, uint64_t* values,
                                            const uint32_t size);
synStatus SYN_API_CALL synGraphGetAttributes(synGraphHandle graphHandle,
                                             const synGraphAttribute* attributes,
                                             synGraphAttributeVal* values, const uint32_t size);
synStatus SYN_API_CALL synGraphCompile(synRecipeHandle* pRecipeHandle,
                                       const synGraphHandle graphHandle, const char* pRecipeName,
                                       const char* pBuildLog);
synStatus SYN_API_CALL synGraphCompileV2(synRecipeHandle* pRecipeHandle,
                                         const synGraphHandle graphHandle, const char* pRecipeName,
                                         synErrorHandle* pErrorHandle);

// ---- Errors of synGraphCompileV2() ------------------------------------------------------------

synStatus SYN_API_CALL synErrorDestroy(synErrorHandle errorHandle);
synStatus SYN_API_CALL synErrorGetStatus(synErrorHandle errorHandle, synStatus* status);
synStatus SYN_API_CALL synErrorGetMessageLength(synErrorHandle errorHandle, size_t* length);
synStatus SYN_API_CALL synErrorGetMessage(synErrorHandle errorHandle, char* message, size_t size);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif  // HCCL_SYNAPSE_GRAPH_API_H_
