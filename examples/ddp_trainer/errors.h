// SPDX-License-Identifier: Apache-2.0
// The texts and errors that the programs of this project share, under our names.
#pragma once

#include "text.h"

namespace ddp_trainer {

using hccl_perf::RunError;
using hccl_perf::text;
using hccl_perf::UsageError;

// An error that all ranks find out together: one of them reports it.
class SharedError : public RunError {
 public:
  using RunError::RunError;
};

}  // namespace ddp_trainer
