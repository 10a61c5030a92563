// SPDX-License-Identifier: Apache-2.0
// Prints schedules for people and for programs.
#pragma once

#include "schedule/schedule.h"
#include "schedule/shape.h"

#include <string>

namespace hccl::schedule {

// Returns text such as "input[3]", "output[0-3]", "scratch[1]" or "a signal".
[[nodiscard]] std::string text_of(const Span& span);

// Returns a line that describes the schedule and a line for each step.
[[nodiscard]] std::string text_of(const Shape& shape, const Schedule& schedule);

// Returns one JSON object, on one line.
[[nodiscard]] std::string json_of(const Shape& shape, const Schedule& schedule);

}  // namespace hccl::schedule
