// SPDX-License-Identifier: Apache-2.0
// Schedules for people and for programs.
#pragma once

#include "schedule/schedule.h"
#include "schedule/shape.h"

#include <string>

namespace hccl::schedule {

// "input[3]", "output[0-3]", "scratch[1]", "a signal"
[[nodiscard]] std::string text_of(const Span& span);

// A line for what it is, then one for each step.
[[nodiscard]] std::string text_of(const Shape& shape, const Schedule& schedule);

// One JSON object, on one line.
[[nodiscard]] std::string json_of(const Shape& shape, const Schedule& schedule);

}  // namespace hccl::schedule
