// SPDX-License-Identifier: Apache-2.0
// A mailbox in shared memory, through which one rank (the sender) offers messages to another (the
// receiver). A mailbox whose bytes are all zero is empty.
#pragma once

#include "base/hash_index.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hccl::node {

// Takes the place of the payload in a long message from host memory, which the receiver cannot map.
// The data goes through the sender's staging buffer, unless the receiver reads it directly from the
// sender's process (CrossMemory).
struct StagedMessage {
  std::uint64_t staging;               // the buffer's offset in the sender's memory file
  std::uint64_t address;               // of the message in the sender's host memory
  std::atomic<std::uint64_t> filled;   // bytes that the sender has copied to the staging buffer
  std::atomic<std::uint64_t> drained;  // bytes that the receiver has copied out of the buffer
};

// An offered message. The receiver copies the data from the sender's memory or, if the message is
// short, from the payload. The receiver writes to a Message only if the message comes in pieces,
// because each write costs a cache-line transfer.
struct alignas(64) Message {
  static constexpr std::size_t kStride = 256;
  static constexpr std::size_t kPayloadBytes = 192;

  std::atomic<std::uint64_t> offered;  // the message's number, plus one; 0: none
  std::uint64_t count;
  std::uint64_t offset;  // in the sender's memory file
  std::uint32_t serial;  // of the pages at `offset`
  std::uint8_t type;
  std::uint8_t content;  // device::Content, kStaged or kInPieces
  alignas(8) std::byte payload[kPayloadBytes];

  // The values of `content` if the payload is a StagedMessage. kStaged: the whole message is in the
  // staging buffer at `offset`. kInPieces: if the receiver requests it (Receipt::wanted), the
  // sender copies the message piece by piece to the part of the staging buffer at `offset`.
  static constexpr std::uint8_t kStaged = 0xfe;
  static constexpr std::uint8_t kInPieces = 0xff;
  [[nodiscard]] StagedMessage& staged() { return *reinterpret_cast<StagedMessage*>(payload); }
};
static_assert(sizeof(Message) == Message::kStride && offsetof(Message, payload) <= 64);

// Packs the number of a call and the lane of its stream. `lane` is the lane's ordinal plus one, or
// 0 if the stream has no lane yet.
[[nodiscard]] constexpr std::uint64_t queued_on(std::uint64_t number, std::uint32_t lane) {
  return number << 32 | lane;
}

// The sends that the sender has queued, or the receives that the receiver has queued. Only the rank
// that queues the calls writes here. No cache line holds data of both ranks.
struct alignas(64) QueuedCalls {
  static constexpr std::size_t kEntries = 16;

  std::atomic<std::uint64_t> count;
  std::array<std::atomic<std::uint64_t>, kEntries> entries;  // queued_on() of the latest calls

  [[nodiscard]] std::atomic<std::uint64_t>& entry(std::uint64_t number) {
    return entries[number % kEntries];
  }
};

// The receiver's progress at one entry of the mailbox, which successive messages reuse. Only the
// receiver writes a Receipt.
struct Receipt {
  std::atomic<std::uint64_t> taken;    // the number of the last message taken, plus one
  std::atomic<std::uint64_t> awaited;  // promise to take the next message, from awaiting()
  // The number of the last message that must come in pieces, plus one. The receiver stores this
  // number when it is ready to copy the pieces. Kept here rather than in the Message, whose entry
  // may be reused once the message has been taken.
  std::atomic<std::uint64_t> wanted;
};

// Packs the receiver's promise to take message `number` as soon as it is offered, if the message
// has this count and type. Count and type are hashed together into 24 bits.
[[nodiscard]] constexpr std::uint64_t awaiting(std::uint64_t number, std::uint64_t count,
                                               std::uint8_t type) {
  return (number + 1) << 24 | hash_index(count << 8 | type, 24);
}

struct Mailbox {
  static constexpr std::uint64_t kMessages = 16;  // the limit on messages not yet taken
  static_assert(kMessages == QueuedCalls::kEntries);

  QueuedCalls sends, receives;
  alignas(64) std::array<Receipt, kMessages> receipts;
  std::array<Message, kMessages> messages;

  [[nodiscard]] Message& message(std::uint64_t number) { return messages[number % kMessages]; }
  [[nodiscard]] Receipt& receipt(std::uint64_t number) { return receipts[number % kMessages]; }
};

}  // namespace hccl::node
