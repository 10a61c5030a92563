// SPDX-License-Identifier: Apache-2.0
// Copies texts to the buffers of C callers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace hccl::api {

// Writes as much of `text` as fits, and always a terminating zero. `capacity` must not be 0.
inline void copy_text(std::string_view text, char* out, std::size_t capacity) noexcept {
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memmove(out, text.data(), length);  // not memcpy: a last error may be set from itself
  out[length] = '\0';
}

}  // namespace hccl::api
