// SPDX-License-Identifier: Apache-2.0
// The device's streams for PyTorch, based on the library's streams. A stream orders only the work
// queued on the library's stream. Operations on tensors have ended by the time their calls return.
#pragma once

#include "device.h"

#include <cstdint>

#include <c10/core/Stream.h>

namespace hccl_torch_hpu {

// Stream 0 is the default stream. Thread safety: any thread.
class Streams {
 public:
  static constexpr std::int64_t kPool = 32;

  // Returns the number of a stream other than the default one. Cycles through a pool of kPool
  // streams.
  [[nodiscard]] static std::int64_t make();
  // Returns the library's stream, which is created on its first use and never destroyed. Throws
  // c10::DistBackendError.
  [[nodiscard]] static synStreamHandle handle(std::int64_t number);
  // Returns the calling thread's current stream.
  [[nodiscard]] static std::int64_t current() noexcept;
  static std::int64_t exchange_current(std::int64_t number) noexcept;
  // Block until all collectives and messages on HPU tensors have ended, and everything queued on
  // one stream, or on all streams, has run. Throw c10::Error if synStreamSynchronize() fails.
  static void synchronize(std::int64_t number);
  static void synchronize_all();
  // Returns whether everything queued on a stream has run.
  [[nodiscard]] static bool is_idle(std::int64_t number);
};

// Returns the number of visible devices: the number of entries in HABANA_VISIBLE_MODULES if it
// begins with a digit, else the value of HCCL_DEVICE_COUNT if it is positive, else 8.
[[nodiscard]] int visible_devices() noexcept;

}  // namespace hccl_torch_hpu
