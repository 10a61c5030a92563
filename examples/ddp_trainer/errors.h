// SPDX-License-Identifier: Apache-2.0
// Imports into this namespace the text() function and the errors that this project's programs
// share.
#pragma once

#include "text.h"

namespace ddp_trainer {

using hccl_perf::RunError;
using hccl_perf::text;
using hccl_perf::UsageError;

// An error that all ranks throw together, so that only one of them reports it.
class SharedError : public RunError {
 public:
  using RunError::RunError;
};

}  // namespace ddp_trainer
