// SPDX-License-Identifier: Apache-2.0
// The errors of this program. RunError, UsageError and text() come from perf/programs.
#pragma once

#include "text.h"

namespace ddp_trainer {

using hccl_perf::RunError;
using hccl_perf::text;
using hccl_perf::UsageError;

// An error that all ranks throw. Only ranks with local rank 0 report the error.
class SharedError : public RunError {
 public:
  using RunError::RunError;
};

}  // namespace ddp_trainer
