// SPDX-License-Identifier: Apache-2.0
// Maps codes to names and texts. Programs may pass any number as a code, so each number has a text.
#include "api/status_texts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace hccl::api {
namespace {

struct ResultText {
  hcclResult_t code;
  const char* name;
  const char* text;
};

constexpr std::array kResultTexts = std::to_array<ResultText>({
    {hcclUninitialized, "hcclUninitialized",
     "not initialised: call synInitialize() and acquire a device first"},
    {hcclSuccess, "hcclSuccess", "success"},
    {hcclNoDeviceFound, "hcclNoDeviceFound", "no device found"},
    {hcclUnsupported, "hcclUnsupported", "not supported by this version of the library"},
    {hcclOutOfMemory, "hcclOutOfMemory", "out of memory"},
    {hcclUnhandledSynapseError, "hcclUnhandledSynapseError",
     "the device was reset, or is already held by a process"},
    {hcclSystemError, "hcclSystemError",
     "a system call failed, or a rank died or did not answer in time"},
    {hcclInternalError, "hcclInternalError",
     "ranks did not join in time, or hccl has a defect: see hcclGetLastErrorMessage()"},
    {hcclInvalidArgument, "hcclInvalidArgument", "invalid argument: see hcclGetLastErrorMessage()"},
    {hcclInvalidUsage, "hcclInvalidUsage",
     "the call does not match the program's state or the other ranks' calls"},
    {hcclSocketError, "hcclSocketError", "a network connection could not be made or was lost"},
    {hcclLibfabricError, "hcclLibfabricError", "the network fabric reported an error"},
    {hcclTryAgainError, "hcclTryAgainError", "not possible now: try again"},
    {hcclBusy, "hcclBusy", "busy: earlier work has not completed"},
    {hcclNumResults, "hcclNumResults", "not a result code"},
    {hcclStreamError, "hcclStreamError", "work on the stream failed"},
    {hcclSynapseTerminated, "hcclSynapseTerminated",
     "the device runtime has ended: call synInitialize() again"},
    {hcclPortDown, "hcclPortDown", "a network port has no link: check its cable and switch"},
});

struct StatusText {
  const char* name;
  const char* text;
};

// Indexed by status.
constexpr std::array kStatusTexts = std::to_array<StatusText>({
    {"synSuccess", "success"},
    {"synInvalidArgument", "invalid argument: see synGetLastErrorMessage()"},
    {"synCbFull", "command buffer is full"},
    {"synOutOfHostMemory", "out of host memory"},
    {"synOutOfDeviceMemory", "out of device memory"},
    {"synObjectAlreadyInitialized", "object is already initialised"},
    {"synObjectNotInitialized", "object is not initialised, or event was not recorded"},
    {"synCommandSubmissionFailure", "a command could not be submitted"},
    {"synNoDeviceFound", "no such device"},
    {"synDeviceTypeMismatch", "device has a different type"},
    {"synFailedToInitializeCb", "command buffer could not be initialised"},
    {"synFailedToFreeCb", "command buffer could not be freed"},
    {"synFailedToMapCb", "command buffer could not be mapped"},
    {"synFailedToUnmapCb", "command buffer could not be unmapped"},
    {"synFailedToAllocateDeviceMemory", "device memory could not be allocated"},
    {"synFailedToFreeDeviceMemory", "device memory could not be freed"},
    {"synFailedNotEnoughDevicesFound", "not enough devices found"},
    {"synDeviceReset", "device was reset"},
    {"synUnsupported", "not supported by this version of the library"},
    {"synWrongParamsFile", "wrong parameters file"},
    {"synDeviceAlreadyAcquired", "this process has acquired a device already"},
    {"synNameIsAlreadyUsed", "name is already in use"},
    {"synBusy", "busy: earlier work has not completed"},
    {"synAllResourcesTaken", "all resources are taken"},
    {"synUnavailable", "device is already held: acquire another device"},
    {"synInvalidTensorDimensions", "invalid tensor dimensions"},
    {"synFail", "work failed: see synGetLastErrorMessage()"},
    {"synOutOfResources", "out of resources"},
    {"synUninitialized", "runtime is not initialised: call synInitialize()"},
    {"synAlreadyInitialized", "runtime is already initialised"},
    {"synFailedSectionValidation", "section validation failed"},
    {"synSynapseTerminated", "runtime has ended: call synInitialize() again"},
    {"synAssertAsync", "an assertion failed on the device"},
    {"synInvalidEventHandle", "unknown event: never created, or destroyed"},
    {"synMappingNotFound", "host memory is not mapped: call synHostMap()"},
    {"synFailedDynamicPatching", "dynamic patching failed"},
    {"synFailedStaticPatching", "static patching failed"},
    {"synFailedToSubmitWorkload", "workload could not be submitted"},
    {"synInvalidSectionsDefinition", "invalid definition of sections"},
    {"synInvalidTensorProperties", "invalid tensor properties"},
    {"synFailHccl", "a collective failed: see synGetLastErrorMessage()"},
    {"synFailedToCollectTime", "time could not be collected"},
    {"synTimeout", "timed out waiting for a device or rank"},
    {"synResourceBadUsage", "the call does not match the state of the program"},
    {"synNullPtr", "null pointer"},
    {"synFailFuser", "graph fuser failed"},
    {"synFailComplexGuid", "complex operation could not be extracted"},
    {"synFailTpcKernels", "kernel library failed"},
});
static_assert(kStatusTexts.size() == synFailTpcKernels + 1);

consteval bool all_fit() {
  return std::ranges::all_of(kStatusTexts, [](const StatusText& entry) {
    return std::string_view(entry.text).size() < STATUS_DESCRIPTION_MAX_SIZE;
  });
}
static_assert(all_fit(), "programs pass buffers of STATUS_DESCRIPTION_MAX_SIZE bytes");

const ResultText* find(hcclResult_t result) noexcept {
  const auto* const found = std::ranges::find(kResultTexts, result, &ResultText::code);
  return found != kResultTexts.end() ? found : nullptr;
}

const StatusText* find(synStatus status) noexcept {
  const auto index = static_cast<std::size_t>(status);
  return index < kStatusTexts.size() ? &kStatusTexts[index] : nullptr;
}

}  // namespace

const char* result_text(hcclResult_t result) noexcept {
  const ResultText* const entry = find(result);
  return entry != nullptr ? entry->text : "unknown result code";
}

const char* status_text(synStatus status) noexcept {
  const StatusText* const entry = find(status);
  return entry != nullptr ? entry->text : "unknown status";
}

const char* result_name(hcclResult_t result) noexcept {
  const ResultText* const entry = find(result);
  return entry != nullptr ? entry->name : "unknown result code";
}

const char* status_name(synStatus status) noexcept {
  const StatusText* const entry = find(status);
  return entry != nullptr ? entry->name : "unknown status";
}

}  // namespace hccl::api
