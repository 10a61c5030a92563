// SPDX-License-Identifier: Apache-2.0
// Shared by all fuzz targets. A target is LLVMFuzzerTestOneInput: it returns for any input,
// or aborts when a property does not hold.
#pragma once

#include "base/file_descriptor.h"
#include "bootstrap/event_loop.h"
#include "bootstrap/frame_connection.h"
#include "bootstrap/frame_seal.h"
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

// True if the parser accepted the input. Targets set it, and the names of corpus files are checked
// by it.
inline bool accepted = false;

// Aborts with the text unless the condition holds.
void check(bool condition, const char* what);

[[nodiscard]] inline std::span<const std::byte> bytes_of(const std::uint8_t* data,
                                                         std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

// A target of two parsers: the first byte of an input says which gets the rest.
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

// An input as a play: steps of a number that says what to do, one that says with what, and bytes.
struct Step {
  std::uint8_t action = 0;
  std::uint8_t detail = 0;
  Bytes bytes;
};
// At most `most` steps; what is cut short has fewer bytes.
[[nodiscard]] std::vector<Step> read_play(std::span<const std::byte> input, std::size_t most);
[[nodiscard]] Bytes write_play(const std::vector<Step>& steps);

// How many descriptors this process has.
[[nodiscard]] int open_descriptors();

// The ends of a connection that keeps the bounds between sends, so that a test decides how much
// each read sees.
struct Connection {
  FileDescriptor near;
  FileDescriptor far;
};
[[nodiscard]] Connection make_connection();

// Sends the bytes at once, with `descriptors` descriptors of some file. Returns false if that
// failed.
bool send_bytes(int socket, std::span<const std::byte> bytes, std::size_t descriptors = 0);

// Waits for the next frame; nothing if the connection ends.
[[nodiscard]] std::optional<bootstrap::Frame> await_frame(bootstrap::EventLoop& loop,
                                                          bootstrap::FrameConnection& connection);

// A key, a nonce and a process that are the same in each run, so that inputs stay valid.
[[nodiscard]] const Bytes& fixed_key();
// A frame with its code, as a rank or a server that knows the key would say it.
[[nodiscard]] Bytes sealed(bootstrap::FrameSeal& seal, bootstrap::FrameType type,
                           std::span<const std::byte> payload);

}  // namespace hccl::fuzz
