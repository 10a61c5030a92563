// SPDX-License-Identifier: Apache-2.0
// The version text that the library reports: the release of the runtime whose interface it
// provides, and a suffix that says that the devices are emulated.
#pragma once

namespace hccl::api {

inline constexpr char kVersionText[] = "1.21.0-emulated";

}  // namespace hccl::api
