// SPDX-License-Identifier: Apache-2.0
// Where the messages from one rank to another are offered and taken: part of what the ranks of a
// communicator share. Zeros are an empty mailbox.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hccl::node {

// How far a message has come that goes through the sender's stage, in bytes.
struct MessageStream {
  std::atomic<std::uint32_t> wanted;  // set by the receiver when it is ready to take the pieces
  std::atomic<std::uint64_t> filled;  // by the sender, which has named the stage before
  std::atomic<std::uint64_t> drained;
};

// A message that is offered lies in the sender's memory, or here if it is short. The receiver
// copies it. Numbers are those of the message, plus one, so that they never are zero. The receiver
// only reads it: a line that both wrote would travel once more for each message.
struct alignas(64) Message {
  static constexpr std::size_t kStride = 256;
  static constexpr std::size_t kPayloadBytes = 192;

  std::atomic<std::uint64_t> offered;
  std::uint64_t count;
  std::uint64_t offset;  // in the sender's memory file
  std::uint32_t serial;  // of the pages there
  std::uint8_t type;
  std::uint8_t content;  // device::Content, or kStreamed
  alignas(8) std::byte payload[kPayloadBytes];

  // The sender's memory cannot be mapped by the receiver: it comes piece by piece through a stage.
  static constexpr std::uint8_t kStreamed = 0xff;
  [[nodiscard]] MessageStream& stream() { return *reinterpret_cast<MessageStream*>(payload); }
};
static_assert(sizeof(Message) == Message::kStride && offsetof(Message, payload) <= 64);

// A call's number and the ordinal of its stream's lane, plus one; 0 if the stream has no lane yet.
[[nodiscard]] constexpr std::uint64_t queued_on(std::uint64_t number, std::uint32_t lane) {
  return number << 32 | lane;
}

// The calls that one of the two ranks has queued. It alone writes them, on cache lines of its own.
struct alignas(64) QueuedCalls {
  static constexpr std::size_t kEntries = 16;

  std::atomic<std::uint64_t> count;
  std::array<std::atomic<std::uint64_t>, kEntries> entries;  // of the last ones: see queued_on()

  [[nodiscard]] std::atomic<std::uint64_t>& entry(std::uint64_t number) {
    return entries[number % kEntries];
  }
};

// The receiver's progress through the messages that have a place one after the other. It alone
// writes it.
struct Receipt {
  std::atomic<std::uint64_t> taken;    // the number of the last one that was, plus one
  std::atomic<std::uint64_t> awaited;  // awaiting() the next one, or what was here before
};

// A message is taken as soon as it comes, whatever else happens. That holds for one of this count
// and type; they are mixed to 24 bits.
[[nodiscard]] constexpr std::uint64_t awaiting(std::uint64_t number, std::uint64_t count,
                                               std::uint8_t type) {
  const std::uint64_t mixed = (count << 8 | type) * 0x9e3779b97f4a7c15u;
  return (number + 1) << 24 | mixed >> 40;
}

struct Mailbox {
  static constexpr std::uint64_t kMessages = 16;  // offered and not taken, at most
  static_assert(kMessages == QueuedCalls::kEntries);

  QueuedCalls sends, receives;
  alignas(64) std::array<Receipt, kMessages> receipts;
  std::array<Message, kMessages> messages;

  [[nodiscard]] Message& message(std::uint64_t number) { return messages[number % kMessages]; }
  [[nodiscard]] Receipt& receipt(std::uint64_t number) { return receipts[number % kMessages]; }
};

}  // namespace hccl::node
