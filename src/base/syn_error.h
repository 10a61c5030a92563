// SPDX-License-Identifier: Apache-2.0
// The exception for failures that have a synStatus of their own.
#pragma once

#include "base/error.h"

#include <synapse_common_types.h>

#include <string>

namespace hccl {

// Returns the result code that an hccl function returns for a failure with this status.
[[nodiscard]] constexpr hcclResult_t result_of(synStatus status) noexcept {
  switch (status) {
    case synSuccess:
      return hcclSuccess;
    case synInvalidArgument:
    case synInvalidTensorDimensions:
      return hcclInvalidArgument;
    case synOutOfHostMemory:
    case synOutOfDeviceMemory:
      return hcclOutOfMemory;
    case synObjectAlreadyInitialized:
    case synObjectNotInitialized:
    case synNoDeviceFound:
    case synDeviceTypeMismatch:
    case synFailedNotEnoughDevicesFound:
    case synWrongParamsFile:
    case synDeviceAlreadyAcquired:
      return hcclInvalidUsage;
    case synNameIsAlreadyUsed:
    case synBusy:
    case synAllResourcesTaken:
      return hcclSystemError;
    case synDeviceReset:
    case synUnavailable:
      return hcclUnhandledSynapseError;
    default:
      return hcclInternalError;
  }
}

class SynError : public Error {
 public:
  SynError(synStatus status, const std::string& message)
      : Error(result_of(status), message), status_(status) {}

  [[nodiscard]] synStatus status() const noexcept { return status_; }

 private:
  synStatus status_;
};

}  // namespace hccl
