// SPDX-License-Identifier: Apache-2.0
// The release whose interface this library provides, as a text for programs that ask for one. The
// text says that devices are emulated.
#pragma once

namespace hccl::api {

inline constexpr char kVersionText[] = "1.21.0-emulated";

}  // namespace hccl::api
