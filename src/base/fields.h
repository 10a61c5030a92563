// SPDX-License-Identifier: Apache-2.0
// Little-endian fields of messages between ranks.
#pragma once

#include "base/wiping_allocator.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hccl {

// The bytes of a message. They may contain a secret, so they are wiped when they are freed.
using Bytes = std::vector<std::byte, WipingAllocator<std::byte>>;

// Removes the first `count` bytes, and wipes the memory that becomes unused.
void erase_front(Bytes& bytes, std::size_t count);

// Appends fields to a message.
class WireWriter {
 public:
  void put_u8(std::uint8_t value) { put_number(value, 1); }
  void put_u16(std::uint16_t value) { put_number(value, 2); }
  void put_u32(std::uint32_t value) { put_number(value, 4); }
  void put_i32(std::int32_t value) { put_number(static_cast<std::uint32_t>(value), 4); }
  void put_u64(std::uint64_t value) { put_number(value, 8); }
  void put_bytes(std::span<const std::byte> bytes);
  void put_text(const std::string& value);  // truncated to 4096 bytes

  [[nodiscard]] const Bytes& bytes() const { return bytes_; }
  [[nodiscard]] Bytes take() { return std::move(bytes_); }

 private:
  void put_number(std::uint64_t value, int size);

  Bytes bytes_;
};

// Reads the fields of a message in the order in which they were written. Once a read has passed the
// end, or a text has exceeded its limit, ok() and complete() return false, and further reads return
// zeros or nothing. Check complete() before using any value.
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
  // Reads as many bytes as the destination has. If there are fewer, leaves it unchanged.
  void read_into(std::span<std::byte> destination);

  template <std::size_t N>
  [[nodiscard]] std::array<std::byte, N> array() {
    std::array<std::byte, N> result{};
    const auto bytes = take(N);
    for (std::size_t i = 0; i < bytes.size(); ++i) result[i] = bytes[i];
    return result;
  }

  [[nodiscard]] bool ok() const { return ok_; }
  // Returns whether all reads have succeeded and no bytes are left.
  [[nodiscard]] bool complete() const { return ok_ && rest_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t count);
  std::uint64_t number(std::size_t size);

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace hccl
