// SPDX-License-Identifier: Apache-2.0
// The memory that the ranks of a communicator share besides that of their devices: a fault record,
// a record per rank, and lanes. It lies in one anonymous memory file; nothing in it is a pointer.
#pragma once

#include "base/file_descriptor.h"
#include "base/waiter.h"
#include "node/mailbox.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hccl::node {

inline constexpr int kMaxRanks = 64;
inline constexpr std::uint32_t kLanes = 128;  // streams of one communicator in use at a time

// The first fault of a communicator, which is final.
struct FaultRecord {
  static constexpr std::size_t kTextBytes = 1024;
  enum State : std::uint32_t { none = 0, being_written, readable };

  std::atomic<std::uint32_t> state{none};
  std::int32_t code = 0;  // hcclResult_t
  char text[kTextBytes] = {};
};

enum class Presence : std::uint32_t { present = 0, departed, dead };

struct alignas(64) RankRecord {
  std::atomic<Presence> presence{Presence::present};
  // The ordinal, plus one, of the lane whose operation the rank runs; 0 if it runs none.
  std::atomic<std::uint32_t> in_operation{0};
  // The same once the rank has waited there for a while, if a host thread blocks on the stream.
  std::atomic<std::uint32_t> host_is_waiting{0};
  // The send or receive it has been waiting in for a while, by pack_call(); 0 if in none.
  std::atomic<std::uint64_t> in_exchange{0};
  Doorbell mail;  // rung when a message to it is offered, or one from it is taken
};

// A rank's part of an operation: one cache line with the flag and 16 bytes of payload, behind which
// larger eager payloads continue. The stride is not a power of two, which would map all slots to
// the same cache sets.
struct alignas(64) Slot {
  static constexpr std::size_t kStride = 1024 + 64;
  static constexpr std::size_t kPayloadBytes = kStride - 48;

  std::atomic<std::uint32_t> number;  // of the operation; stored last
  std::uint8_t collective, type, operation;
  std::uint8_t memory;  // pack_memory()
  std::int32_t root;
  std::uint32_t send_serial;  // of the pages at the offsets below
  std::uint64_t count;
  std::uint64_t send_offset, recv_offset;  // in the rank's memory file
  std::uint32_t recv_serial;
  std::atomic<std::uint32_t> slice;  // the rank is ready for; of an operation cut into slices
  std::byte payload[16];
};
static_assert(sizeof(Slot) == 64 && offsetof(Slot, payload) == 48);

// Packs facts about a rank's memory: what the send buffer holds (device::Content), and which of the
// buffers are staging buffers.
[[nodiscard]] constexpr std::uint8_t pack_memory(std::uint8_t content, bool send_is_staged,
                                                 bool recv_is_staged) {
  return static_cast<std::uint8_t>(content | (send_is_staged ? 0x10 : 0) |
                                   (recv_is_staged ? 0x20 : 0));
}
[[nodiscard]] constexpr std::uint8_t content_in(std::uint8_t memory) { return memory & 0x0f; }
[[nodiscard]] constexpr bool send_is_staged(std::uint8_t memory) { return (memory & 0x10) != 0; }
[[nodiscard]] constexpr bool recv_is_staged(std::uint8_t memory) { return (memory & 0x20) != 0; }

// How many operations ahead of the current one a rank may post.
inline constexpr std::uint32_t kMaxAhead = 15;
// Slots of a rank in a lane. A rank that posts operation n + kMaxAhead is in n, so all others
// have posted n - 1 and have finished n - 2 - kMaxAhead: its slot is read no more.
inline constexpr std::uint32_t kSlots = 32;
static_assert(kSlots >= 2 * kMaxAhead + 2 && (kSlots & (kSlots - 1)) == 0);

// One stream's operations, one in flight at a time. `state` is number << 2 | phase; a complete
// operation is the next one's gathering. A rank that had no processor may look at this when others
// are several operations further on.
struct LaneBlock {
  enum Phase : std::uint32_t { gathering = 0, open = 1, failed = 3 };
  [[nodiscard]] static constexpr std::uint32_t state_of(std::uint32_t number, Phase phase) {
    return number << 2 | phase;
  }

  // The ordinal, plus one, of the lane that has this storage; 0 if it is free.
  alignas(64) std::atomic<std::uint64_t> key{0};
  std::uint32_t released = 0;  // ranks that have released the lane; under the pool's lock
  alignas(64) std::atomic<std::uint32_t> state{0};
  alignas(64) std::atomic<std::uint64_t> claimed{0};  // number << 32 | TileClaims
  alignas(64) std::atomic<std::uint32_t> tiles_done{0};
  alignas(64) Doorbell bell;
};

struct alignas(64) CurrentTile {
  std::atomic<std::uint32_t> number{0};  // plus one, of the tile that the rank stores; 0: none
};

struct ControlHeader {
  std::uint32_t ranks = 0;
  std::uint32_t first_number = 0;  // of every lane's first operation
  alignas(64) FaultRecord fault;
  alignas(64) std::atomic<std::uint32_t> pool_lock{0};  // rank + 1 of the holder
  // Lanes from here on were never used; looking at one costs a page.
  std::atomic<std::uint32_t> lane_end{0};
  RankRecord records[kMaxRanks];
};

// Addresses the parts of a mapped control segment.
class ControlBlock {
 public:
  [[nodiscard]] static std::size_t bytes(int ranks) {
    const auto count = static_cast<std::size_t>(ranks);
    return sizeof(ControlHeader) + kLanes * lane_bytes(ranks) + count * count * sizeof(Mailbox);
  }
  // Makes a fresh segment. Tests start the numbers just below a wrap. Throws
  // Error(hcclSystemError).
  [[nodiscard]] static FileDescriptor create(int ranks, std::uint32_t first_number = 0);

  explicit ControlBlock(std::byte* base) : base_(base) {}

  [[nodiscard]] ControlHeader& header() const { return *reinterpret_cast<ControlHeader*>(base_); }
  [[nodiscard]] LaneBlock& lane(std::uint32_t index) const {
    return *reinterpret_cast<LaneBlock*>(lane_base(index));
  }
  // Returns a record for each rank.
  [[nodiscard]] CurrentTile* current_tiles(std::uint32_t index) const {
    return reinterpret_cast<CurrentTile*>(lane_base(index) + sizeof(LaneBlock));
  }
  [[nodiscard]] Mailbox& mailbox(int source, int destination) const {
    const std::size_t index =
        static_cast<std::size_t>(source) * header().ranks + static_cast<std::size_t>(destination);
    return *reinterpret_cast<Mailbox*>(lane_base(kLanes) + index * sizeof(Mailbox));
  }
  // Returns kSlots rows of a slot for each rank.
  [[nodiscard]] std::byte* slots(std::uint32_t index) const {
    return lane_base(index) + sizeof(LaneBlock) + header().ranks * sizeof(CurrentTile);
  }
  // Returns the slot of `rank` for the lane's operation `number`.
  [[nodiscard]] Slot& slot(std::uint32_t index, std::uint32_t number, int rank) const {
    const std::size_t row = number % kSlots;
    return *reinterpret_cast<Slot*>(
        slots(index) + (row * header().ranks + static_cast<std::size_t>(rank)) * Slot::kStride);
  }

 private:
  [[nodiscard]] static std::size_t lane_bytes(int ranks) {
    return sizeof(LaneBlock) +
           static_cast<std::size_t>(ranks) * (sizeof(CurrentTile) + kSlots * Slot::kStride);
  }
  [[nodiscard]] std::byte* lane_base(std::uint32_t index) const {
    return base_ + sizeof(ControlHeader) + index * lane_bytes(static_cast<int>(header().ranks));
  }

  std::byte* base_;
};

}  // namespace hccl::node
