// SPDX-License-Identifier: Apache-2.0
// The release whose interface this library provides, for programs that ask for a text. The text
// says that devices are emulated.
#pragma once

namespace hccl::api {

inline constexpr char kVersionText[] = "1.21.0-emulated";

}  // namespace hccl::api
