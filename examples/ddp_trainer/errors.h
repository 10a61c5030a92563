// SPDX-License-Identifier: Apache-2.0
// Texts and errors that the programs of this project share, under names of this namespace.
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
