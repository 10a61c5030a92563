// SPDX-License-Identifier: Apache-2.0
// The mailbox in which one rank offers messages to another, in the memory that the ranks of a node
// share. A mailbox of zeros is empty.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hccl::node {

// The progress, in bytes, of a message that goes through the sender's staging buffer.
struct MessageStream {
  std::atomic<std::uint32_t> wanted;  // set by the receiver when it is ready to take the pieces
  std::atomic<std::uint64_t> filled;  // set by the sender after it has stored the buffer's position
  std::atomic<std::uint64_t> drained;
};

// An offered message. The receiver copies the data from the sender's memory or, if the message is
// short, from the payload. The receiver does not write to a message that is not streamed, because
// such a write would cost one more transfer of the cache line for each message.
struct alignas(64) Message {
  static constexpr std::size_t kStride = 256;
  static constexpr std::size_t kPayloadBytes = 192;

  std::atomic<std::uint64_t> offered;  // the message's number, plus one; 0: none
  std::uint64_t count;
  std::uint64_t offset;  // in the sender's memory file
  std::uint32_t serial;  // of the pages there
  std::uint8_t type;
  std::uint8_t content;  // device::Content, or kStreamed
  alignas(8) std::byte payload[kPayloadBytes];

  // A value of `content`: the receiver cannot map the sender's memory, so the data comes in pieces
  // through a staging buffer.
  static constexpr std::uint8_t kStreamed = 0xff;
  [[nodiscard]] MessageStream& stream() { return *reinterpret_cast<MessageStream*>(payload); }
};
static_assert(sizeof(Message) == Message::kStride && offsetof(Message, payload) <= 64);

// Packs a call's number and its stream's lane: the lane's ordinal plus one, or 0 if the stream has
// no lane yet.
[[nodiscard]] constexpr std::uint64_t queued_on(std::uint64_t number, std::uint32_t lane) {
  return number << 32 | lane;
}

// The calls that one of the two ranks has queued. Only that rank writes them, on its own cache
// lines.
struct alignas(64) QueuedCalls {
  static constexpr std::size_t kEntries = 16;

  std::atomic<std::uint64_t> count;
  std::array<std::atomic<std::uint64_t>, kEntries> entries;  // of the latest calls: queued_on()

  [[nodiscard]] std::atomic<std::uint64_t>& entry(std::uint64_t number) {
    return entries[number % kEntries];
  }
};

// The receiver's progress through the messages that successively use one entry of the mailbox. Only
// the receiver writes it.
struct Receipt {
  std::atomic<std::uint64_t> taken;    // the number of the last message taken, plus one
  std::atomic<std::uint64_t> awaited;  // awaiting() of the next message, if promised
};

// Packs the receiver's promise to take message `number` unconditionally when it arrives, provided
// that the message has this count and type. Count and type are hashed together to 24 bits.
[[nodiscard]] constexpr std::uint64_t awaiting(std::uint64_t number, std::uint64_t count,
                                               std::uint8_t type) {
  const std::uint64_t mixed = (count << 8 | type) * 0x9e3779b97f4a7c15u;
  return (number + 1) << 24 | mixed >> 40;
}

struct Mailbox {
  static constexpr std::uint64_t kMessages = 16;  // maximum number that are offered but not taken
  static_assert(kMessages == QueuedCalls::kEntries);

  QueuedCalls sends, receives;
  alignas(64) std::array<Receipt, kMessages> receipts;
  std::array<Message, kMessages> messages;

  [[nodiscard]] Message& message(std::uint64_t number) { return messages[number % kMessages]; }
  [[nodiscard]] Receipt& receipt(std::uint64_t number) { return receipts[number % kMessages]; }
};

}  // namespace hccl::node
