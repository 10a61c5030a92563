// SPDX-License-Identifier: Apache-2.0
// The sentences of the codes. Tables, because a code is a number programs may pass wrongly: any
// value finds a text.
#include "api/status_texts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace hccl::api {
namespace {

struct ResultText {
  hcclResult_t code;
  const char* text;
};

constexpr std::array kResultTexts = std::to_array<ResultText>({
    {hcclUninitialized, "not initialised: call synInitialize() and acquire a device first"},
    {hcclSuccess, "success"},
    {hcclNoDeviceFound, "no device found"},
    {hcclUnsupported, "not supported by this version of the library"},
    {hcclOutOfMemory, "out of memory"},
    {hcclUnhandledSynapseError, "the device runtime reported an error"},
    {hcclSystemError, "a system call failed, or a rank has died or did not answer"},
    {hcclInternalError, "internal error of the library"},
    {hcclInvalidArgument, "invalid argument"},
    {hcclInvalidUsage, "invalid usage: the call does not fit the state or the other ranks' calls"},
    {hcclSocketError, "a network connection could not be made or was lost"},
    {hcclLibfabricError, "the network fabric reported an error"},
    {hcclTryAgainError, "not possible now: try again"},
    {hcclBusy, "busy: earlier work has not completed"},
    {hcclNumResults, "not a result code: the number of result codes"},
    {hcclStreamError, "work on the stream failed"},
    {hcclSynapseTerminated, "the device runtime has been terminated"},
    {hcclPortDown, "a network port is down"},
});

// Indexed by status.
constexpr std::array kStatusTexts = std::to_array<const char*>({
    "success",
    "invalid argument",
    "command buffer is full",
    "out of host memory",
    "out of device memory",
    "object is already initialised",
    "object is not initialised",
    "a command could not be submitted",
    "no device found",
    "device is of another type",
    "command buffer could not be initialised",
    "command buffer could not be freed",
    "command buffer could not be mapped",
    "command buffer could not be unmapped",
    "device memory could not be allocated",
    "device memory could not be freed",
    "not enough devices found",
    "device was reset",
    "not supported by this version of the library",
    "wrong parameters file",
    "this process has acquired a device already",
    "name is already in use",
    "busy: earlier work has not completed",
    "all resources are taken",
    "not available",
    "invalid tensor dimensions",
    "failure",
    "out of resources",
    "runtime is not initialised: call synInitialize()",
    "runtime is already initialised",
    "section validation failed",
    "runtime has been terminated",
    "an assertion failed on the device",
    "invalid event handle",
    "host memory is not mapped",
    "dynamic patching failed",
    "static patching failed",
    "workload could not be submitted",
    "invalid definition of sections",
    "invalid tensor properties",
    "a collective operation failed",
    "time could not be collected",
    "timed out",
    "bad usage of a resource",
    "null pointer",
    "graph fuser failed",
    "complex operation could not be extracted",
    "kernel library failed",
});
static_assert(kStatusTexts.size() == synFailTpcKernels + 1);

consteval bool all_fit() {
  return std::ranges::all_of(kStatusTexts, [](std::string_view text) {
    return text.size() < STATUS_DESCRIPTION_MAX_SIZE;
  });
}
static_assert(all_fit(), "programs pass buffers of STATUS_DESCRIPTION_MAX_SIZE bytes");

}  // namespace

const char* result_text(hcclResult_t result) noexcept {
  for (const ResultText& entry : kResultTexts) {
    if (entry.code == result) return entry.text;
  }
  return "unknown result code";
}

const char* status_text(synStatus status) noexcept {
  const auto index = static_cast<std::size_t>(status);
  return index < kStatusTexts.size() ? kStatusTexts[index] : "unknown status";
}

}  // namespace hccl::api
