// SPDX-License-Identifier: Apache-2.0
// What the programs of this project share about texts and errors, under our names.
#pragma once

#include "text.h"

namespace ddp_trainer {

using hccl_perf::RunError;
using hccl_perf::text;
using hccl_perf::UsageError;

// What all ranks find out together: one of them says it.
class SharedError : public RunError {
 public:
  using RunError::RunError;
};

}  // namespace ddp_trainer
