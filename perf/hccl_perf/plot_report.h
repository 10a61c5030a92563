// SPDX-License-Identifier: Apache-2.0
// The results as a picture: bus bandwidth and time per call over size, a line for each type,
// reduction, root and placement of the sweep.
#pragma once

#include "results.h"

#include <string>

namespace hccl_perf {

// SVG.
[[nodiscard]] std::string plot_text(const Results& results);

}  // namespace hccl_perf
