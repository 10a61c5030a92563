// SPDX-License-Identifier: Apache-2.0
#include "step_recorder.h"

#include <utility>

#include <c10/util/hash.h>

namespace hccl_torch_hpu {

StepRecorder& StepRecorder::instance() {
  static auto* const recorder = new StepRecorder;
  return *recorder;
}

void StepRecorder::add(std::size_t signature) {
  const std::lock_guard lock(mutex_);
  ++operations_;
  signature_ = c10::hash_combine(signature_, signature);
}

StepRecorder::Step StepRecorder::end_step() {
  const std::lock_guard lock(mutex_);
  Step step;
  step.operations = std::exchange(operations_, 0);
  const std::size_t signature = std::exchange(signature_, 0);
  step.is_new = step.operations > 0 && known_.insert(signature).second;
  return step;
}

}  // namespace hccl_torch_hpu
