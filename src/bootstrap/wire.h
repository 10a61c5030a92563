// SPDX-License-Identifier: Apache-2.0
// How bytes travel between ranks: frames of a checked header and a payload of little-endian fields.
#pragma once

#include "base/file_descriptor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hccl::bootstrap {

using Bytes = std::vector<std::byte>;

enum class FrameType : std::uint8_t {
  greeting = 1,   // server: its version and a nonce
  early_hello,    // rank: who it is, said at once, proved without the server's nonce
  hello,          // rank: the same, proved with it
  welcome,        // server: accepted; who the server is, and its own proof
  refusal,        // server: not accepted, and why
  server_rank,    // server: the rank its process holds
  table,          // server: everybody is there; who they are
  ready,          // rank: has all of its node's descriptors; what it announces to other nodes
  go,             // server: everybody is ready; what all announce
  gave_up,        // rank: its deadline has passed
  leaving,        // rank: an error of its own ends its part
  failure,        // server: the rendezvous has failed, and why
  fault,          // after that, where there are several nodes, both ways: what has failed, and why
  departed,       // rank: it has left; server: which one has
  contribution,   // member to leader: its bytes and memory
  entry,          // leader to member: what one rank contributed
  control_block,  // leader to member: the shared segment; the last frame
};

struct Frame {
  FrameType type{};
  Bytes payload;
  std::vector<FileDescriptor> descriptors;
};

constexpr std::size_t kFrameHeaderSize = 12;
constexpr std::size_t kSmallPayload = std::size_t{8}
                                      << 10;  // all frames before acceptance, and failures
constexpr std::size_t kLargePayload = std::size_t{16} << 20;  // tables and contributions
constexpr std::size_t kMostDescriptors = 4;                   // per frame

struct FrameHeader {
  FrameType type{};
  std::uint8_t descriptors = 0;
  std::uint32_t length = 0;
};

[[nodiscard]] Bytes encode_frame(FrameType type, std::span<const std::byte> payload,
                                 std::size_t descriptors = 0);
// Nothing if the bytes are no header of ours or announce more than `most` bytes.
[[nodiscard]] std::optional<FrameHeader> parse_header(
    std::span<const std::byte, kFrameHeaderSize> bytes, std::size_t most);
// Whether the first bytes of a connection may yet become a hello, the only thing that a rank says
// before it is let in. Judges as little as one byte, so that nobody is waited for in vain.
[[nodiscard]] bool may_become_hello(std::span<const std::byte> bytes);
// The payload of the frame that the bytes begin with, if it is whole and of this type.
[[nodiscard]] std::optional<std::span<const std::byte>> first_payload(
    std::span<const std::byte> bytes, FrameType type);

// Appends fields.
class WireWriter {
 public:
  void put_u8(std::uint8_t value) { put_number(value, 1); }
  void put_u16(std::uint16_t value) { put_number(value, 2); }
  void put_u32(std::uint32_t value) { put_number(value, 4); }
  void put_i32(std::int32_t value) { put_number(static_cast<std::uint32_t>(value), 4); }
  void put_u64(std::uint64_t value) { put_number(value, 8); }
  void put_bytes(std::span<const std::byte> bytes);
  void put_text(const std::string& value);  // cut at 4096 bytes

  [[nodiscard]] const Bytes& bytes() const { return bytes_; }
  [[nodiscard]] Bytes take() { return std::move(bytes_); }

 private:
  void put_number(std::uint64_t value, int size);

  Bytes bytes_;
};

// Takes fields in the same order. Reading past the end, or a text over its limit, gives zeros and
// is remembered: check complete() before anything that was read is used.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  [[nodiscard]] std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  [[nodiscard]] std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  [[nodiscard]] std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  [[nodiscard]] std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  [[nodiscard]] std::uint64_t u64() { return number(8); }
  [[nodiscard]] std::string text(std::size_t most);  // control characters become '?'
  [[nodiscard]] Bytes bytes(std::size_t count);
  [[nodiscard]] Bytes remainder();

  template <std::size_t N>
  [[nodiscard]] std::array<std::byte, N> array() {
    std::array<std::byte, N> result{};
    const auto bytes = take(N);
    for (std::size_t i = 0; i < bytes.size(); ++i) result[i] = bytes[i];
    return result;
  }

  [[nodiscard]] bool ok() const { return ok_; }
  // Everything was there and nothing is left over.
  [[nodiscard]] bool complete() const { return ok_ && rest_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t count);
  std::uint64_t number(std::size_t size);

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace hccl::bootstrap
