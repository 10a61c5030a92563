// SPDX-License-Identifier: Apache-2.0
// Helpers for all fuzz targets. A target is a function LLVMFuzzerTestOneInput, which aborts if a
// property does not hold, and otherwise must return.
#pragma once

#include "base/file_descriptor.h"
#include "bootstrap/event_loop.h"
#include "bootstrap/frame_connection.h"
#include "bootstrap/shared_secret.h"
#include "bootstrap/wire.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hccl::fuzz {

// Each target sets this to true if it counts the input as accepted. The driver requires true for
// corpus files whose names begin with "valid-", and false for those that begin with "invalid-".
inline bool accepted = false;

// Prints `what` and aborts unless the condition holds.
void check(bool condition, const char* what);

[[nodiscard]] inline std::span<const std::byte> bytes_of(const std::uint8_t* data,
                                                         std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

// Runs one of two parsers, selected by the first byte of the input, on the remaining bytes.
template <class First, class Second>
int either(const std::uint8_t* data, std::size_t size, First first, Second second) {
  accepted = false;
  if (size == 0) return 0;
  const auto bytes = bytes_of(data + 1, size - 1);
  if (*data % 2 == 0) {
    first(bytes);
  } else {
    second(bytes);
  }
  return 0;
}

// An input is a sequence of steps, each with an action, a detail of the action, and bytes.
struct Step {
  std::uint8_t action = 0;
  std::uint8_t detail = 0;
  Bytes bytes;
};
// Returns the steps of an input, at most `most`. If the input is truncated, the last step has fewer
// bytes.
[[nodiscard]] std::vector<Step> read_play(std::span<const std::byte> input, std::size_t most);
[[nodiscard]] Bytes write_play(const std::vector<Step>& steps);

// Returns the number of this process's open descriptors plus a constant, for comparisons.
[[nodiscard]] int open_descriptors();

// Both ends of a connection. The connection preserves message boundaries, so a test determines how
// many bytes each read returns.
struct Connection {
  FileDescriptor near;
  FileDescriptor far;
};
[[nodiscard]] Connection make_connection();

// Sends the bytes in one message, with `descriptors` copies, but at most 253, of a file descriptor.
// Does not block. Returns false on failure, for example if the socket is full.
bool send_bytes(int socket, std::span<const std::byte> bytes, std::size_t descriptors = 0);

// Waits for the next frame and returns it. Returns nothing if the connection ends instead. Aborts
// after 20 seconds.
[[nodiscard]] std::optional<bootstrap::Frame> await_frame(bootstrap::EventLoop& loop,
                                                          bootstrap::FrameConnection& connection);

// Returns a key that is the same in each run, so that inputs stay valid.
[[nodiscard]] const bootstrap::JoinKey& fixed_key();

}  // namespace hccl::fuzz
