// SPDX-License-Identifier: Apache-2.0
// Copies strings to the buffers of C callers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace hccl::api {

// Copies `text` to `out`, truncated to `capacity` bytes including the terminating zero. `capacity`
// must be at least 1.
inline void copy_text(std::string_view text, char* out, std::size_t capacity) noexcept {
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memmove(out, text.data(), length);  // not memcpy: `text` may lie in `out`
  out[length] = '\0';
}

}  // namespace hccl::api
