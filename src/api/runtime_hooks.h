// SPDX-License-Identifier: Apache-2.0
// C++ functions that profilers and tools of the original runtime look up by their mangled names.
// Therefore the names and the parameter types are fixed. Not installed, because programs do not
// call these functions.
#pragma once

#include <hccl_types.h>

#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming, readability-avoid-const-params-in-decls): not our
// names
struct hcclEventHandle {
  std::uint64_t event = 0;
  std::uint64_t index = 0;
  std::uint64_t pIndex = 0;
};

struct DfaStatus;  // describes a device failure; never read here

enum class DfaPhase { NONE, STARTED, ENDED };

inline constexpr std::uint64_t HCCL_InfinityWait = ~std::uint64_t{0};

#pragma GCC visibility push(default)

// Do nothing and succeed: acquiring a device prepares it, and releasing the device undoes that.
hcclResult_t hcclInitDevice(const synDeviceId deviceId);
hcclResult_t hcclInitDeviceGaudi(const synDeviceId deviceId);
hcclResult_t hcclDestroyDevice(const synDeviceId deviceId = 0);

// Fail: emulated devices have no transport-level events.
hcclResult_t hcclEventRecord(hcclEventHandle* eventHandle, synStreamHandle streamHandle);
hcclResult_t hcclSynchronizeEvent(const hcclEventHandle& eventHandle,
                                  std::uint64_t microSeconds = HCCL_InfinityWait);

// Do nothing and succeed: work is submitted by the call that queues it.
hcclResult_t hcclFlushSubmissions(synStreamHandle streamHandle);
hcclResult_t hcclFlushSubmissionsAllStreams();

// Wait for a stream, or for all streams of all devices that the process holds.
hcclResult_t hcclSynchronizeStream(synStreamHandle streamHandle);
hcclResult_t hcclSynchronizeAllStreams();

// Change nothing; hcclDFA() logs a warning. A failure belongs to a communicator, so the process has
// no failure state to dump or reset.
hcclResult_t hcclDFA(DfaStatus& dfaStatus, void (*dfaLogFunc)(int, const char*));
hcclResult_t hcclDfaUpdateState(DfaPhase dfaPhase);

// Writes the version text, truncated to `len` bytes including the terminating zero.
hcclResult_t hcclGetVersionString(char* pVersion, const unsigned len);

// Do nothing: there is no command buffer to fill and no trace to mark.
bool hcclIsACcbHalfFull(const unsigned archStreamIdx);
void hcclSetTraceMarker(const synStreamHandle streamHandle, std::uint32_t value);

// NOLINTEND(readability-identifier-naming, readability-avoid-const-params-in-decls)

#pragma GCC visibility pop
