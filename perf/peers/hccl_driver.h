// SPDX-License-Identifier: Apache-2.0
// Common parts of the programs that measure hccl and start their ranks themselves.
#pragma once

#include "session.h"

#include <hccl.h>
#include <synapse_api.h>

#include <stdexcept>
#include <string>

namespace peers {

// Memory that the ranks share.
struct Meeting {
  CommandBoard board;
  hcclUniqueId id{};
};

// If the call failed, throws a std::runtime_error that names `call` and the reason.
inline void check(hcclResult_t result, const char* call) {
  if (result == hcclSuccess) return;
  const char* text = hcclGetLastErrorMessage();
  throw std::runtime_error(std::string(call) + ": " +
                           (text != nullptr ? text : hcclGetErrorString(result)));
}

inline void check(synStatus status, const char* call) {
  if (status == synSuccess) return;
  throw std::runtime_error(std::string(call) + ": status " + std::to_string(status) + ": " +
                           synGetLastErrorMessage());
}

}  // namespace peers
