// SPDX-License-Identifier: Apache-2.0
// The functions for memory reports, kernel libraries and state dumps.
#include "api/guard.h"
#include "api/handles.h"
#include "base/log.h"

#include <synapse_api.h>

#include <cstdlib>

using namespace hccl;
using namespace hccl::api;

namespace {

void report_streams() {
  for (const std::uint64_t handle : runtime().streams().handles()) {
    const StreamPin stream = runtime().streams().pin(handle);
    if (!stream) continue;
    log_line(LogLevel::error, "state",
             text("stream ", stream->id(), " of device ", stream->device().id(), ": ",
                  stream->progress()->completed(), " of ", stream->pushed(),
                  " pieces of work have run"));
  }
}

void report_communicators() {
  for (const std::uint64_t handle : comm::communicators().handles()) {
    const CommunicatorPin communicator = comm::communicators().pin(handle);
    if (!communicator) continue;
    const char* const fault = communicator->async_error_text();
    log_line(LogLevel::error, "state",
             text("rank ", communicator->rank(), " of ", communicator->size(), " on device ",
                  communicator->device().id(), ": ", fault != nullptr ? fault : "no fault"));
  }
}

}  // namespace

synStatus SYN_API_CALL synDumpStateAndTerminate(const char* msg, uint64_t) {
  return syn_guard(__func__, [&] {
    log_line(LogLevel::error, "state",
             text("the program aborts: ", msg != nullptr ? msg : "no reason given"));
    report_streams();
    report_communicators();
    std::abort();
  });
}

// Ignores the numbers, which only monitoring tools for Gaudi use.
synStatus SYN_API_CALL synUpdateMemoryConsumption(uint64_t, uint64_t) {
  return syn_guard(__func__, [] { runtime().require_initialized(); });
}

// Emulated devices have no kernel libraries.
synStatus SYN_API_CALL synTPCLibraryGetVersionSize(uint32_t* size) {
  return syn_guard(__func__, [&] {
    require_pointer(size, "size");
    *size = 0;
  });
}

synStatus SYN_API_CALL synTPCLibraryGetVersions(const char**, uint32_t*) {
  return syn_guard(__func__, [] {});
}
