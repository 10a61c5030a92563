// SPDX-License-Identifier: Apache-2.0
// The control block: memory that a communicator's ranks on one node share in addition to their
// arenas. Holds a fault record, a record per rank, lanes and mailboxes. Contains no pointers,
// because each rank may map the block at a different address.
#pragma once

#include "base/file_descriptor.h"
#include "base/waiter.h"
#include "node/mailbox.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hccl::node {

inline constexpr int kMaxRanks = 64;
inline constexpr std::uint32_t kLanes = 128;  // maximum number of lanes per communicator at a time

// The first fault of a communicator. Later faults are not recorded.
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
  // The ordinal, plus one, of the lane on which the rank runs a collective; 0 if the rank runs
  // none.
  std::atomic<std::uint32_t> in_operation{0};
  // Equal to in_operation while the rank sleeps in that collective and a host thread blocks on the
  // lane's stream; otherwise 0.
  std::atomic<std::uint32_t> host_is_waiting{0};
  // While the rank waits in a group of sends and receives: the first incomplete call of the group,
  // packed by pack_call(). Otherwise 0.
  std::atomic<std::uint64_t> in_exchange{0};
  Doorbell mail;  // rung for messages to or from this rank, for a departure and for a fault

  // This rank's tag (see CrossMemory): its address and its value. The address is 0 while there is
  // no tag.
  alignas(64) std::atomic<std::uint64_t> tag_address{0};
  std::uint64_t tag = 0;
  // The ranks whose host memory this rank has found that it may read: one bit per rank.
  std::atomic<std::uint64_t> readable{0};
};

// A rank's part of an operation: a cache line with the descriptor and the first 16 bytes of the
// payload. A longer eager payload continues after that line. The stride is not a power of two,
// because a power of two would map all slots to the same cache sets.
struct alignas(64) Slot {
  static constexpr std::size_t kStride = 1024 + 64;
  static constexpr std::size_t kHeaderBytes = 48;
  static constexpr std::size_t kPayloadBytes = kStride - kHeaderBytes;

  std::atomic<std::uint32_t> number;  // of the operation; stored last
  std::uint8_t collective, type, operation;
  std::uint8_t memory;  // pack_memory()
  std::int32_t root;
  std::uint32_t send_serial;  // of the pages at send_offset
  std::uint64_t count;
  std::uint64_t send_offset, recv_offset;  // in the rank's memory file
  std::uint32_t recv_serial;
  // On the cooperative path, the number of slices for which the rank is ready. An operation that is
  // not sliced has one slice.
  std::atomic<std::uint32_t> slice;
  std::byte payload[16];

  // The address of the rank's input in host memory. The slot holds this address instead of a
  // payload if the rank uses a staging buffer.
  [[nodiscard]] std::uint64_t& host_input() { return *reinterpret_cast<std::uint64_t*>(payload); }
};
static_assert(sizeof(Slot) == 64 && offsetof(Slot, payload) == Slot::kHeaderBytes);

// A slot's host payload holds the rank's data if the rank's buffers are in ordinary host memory,
// and the data fits into the host payload but not into the slot. As in Slot, the stride is not a
// power of two.
inline constexpr std::size_t kHostPayloadBytes = 8192;
inline constexpr std::size_t kHostPayloadStride = kHostPayloadBytes + 64;
// The maximum total size of all ranks' payloads in an operation. On the eager path, each rank reads
// all payloads. For more data, HostPath is faster, because there each rank reduces only its share.
inline constexpr std::size_t kMaxHostPayloadsBytes = 8 * kHostPayloadBytes;
// Only the first lanes have host payloads, because these take up several times as much memory as
// slots.
inline constexpr std::uint32_t kHostPayloadLanes = 8;

[[nodiscard]] constexpr bool fits_host_payload(std::uint64_t bytes, int ranks) {
  return bytes <= kHostPayloadBytes &&
         bytes * static_cast<std::uint64_t>(ranks) <= kMaxHostPayloadsBytes;
}
// Returns whether `ranks` is small enough for host payloads to be useful. With more ranks, any data
// that fits_host_payload() accepts also fits into a slot.
[[nodiscard]] constexpr bool uses_host_payloads(int ranks) {
  return fits_host_payload(Slot::kPayloadBytes + 1, ranks);
}

// How a rank maps its peers' buffers. Each rank chooses by the size of its own pair of buffers and
// by how often the lane has used that pair (Lane::use_buffers()). `unused`: a small pair, at its
// first use; the rank maps only the tiles that it computes. `by_shares`: a large pair, for its
// first kUsesByShares uses; if any rank chooses this, every rank computes a fixed share of the
// tiles and maps only that share. `whole`: any other pair; the rank maps all peers' buffers.
enum class Mapping : std::uint8_t { whole, unused, by_shares };

// The properties of a rank's buffers, which pack_memory() packs into one byte of the rank's slot.
// `content`: the device::Content of the send buffer.
struct SlotMemory {
  std::uint8_t content = 0;
  bool continues = false;    // the input is the result of the lane's previous operation (post.cpp)
  bool reads_peers = false;  // the rank has chosen HostReads
  bool send_is_staged = false;
  bool recv_is_staged = false;
  Mapping mapping = Mapping::whole;
};
[[nodiscard]] constexpr std::uint8_t pack_memory(const SlotMemory& memory) {
  return static_cast<std::uint8_t>(
      memory.content | (memory.continues ? 0x04 : 0) | (memory.reads_peers ? 0x08 : 0) |
      (memory.send_is_staged ? 0x10 : 0) | (memory.recv_is_staged ? 0x20 : 0) |
      static_cast<unsigned>(memory.mapping) << 6);
}
[[nodiscard]] constexpr std::uint8_t content_in(std::uint8_t memory) { return memory & 0x03; }
[[nodiscard]] constexpr bool continues(std::uint8_t memory) { return (memory & 0x04) != 0; }
[[nodiscard]] constexpr bool reads_peers(std::uint8_t memory) { return (memory & 0x08) != 0; }
[[nodiscard]] constexpr bool send_is_staged(std::uint8_t memory) { return (memory & 0x10) != 0; }
[[nodiscard]] constexpr bool recv_is_staged(std::uint8_t memory) { return (memory & 0x20) != 0; }
[[nodiscard]] constexpr Mapping mapping_in(std::uint8_t memory) {
  return static_cast<Mapping>(memory >> 6);
}

// The maximum number of operations that a rank may post ahead of its current one.
inline constexpr std::uint32_t kMaxAhead = 15;
// The number of slots that a rank has in a lane. A rank that runs operation n writes its slots for
// operations up to n + kMaxAhead. By then, every other rank has posted operation n - 1, so it runs
// operation n - 1 - kMaxAhead or a later one, and reads no older slot.
inline constexpr std::uint32_t kSlots = 32;
static_assert(kSlots >= 2 * kMaxAhead + 2 && (kSlots & (kSlots - 1)) == 0);

// The shared state of a lane. `state` is number << 2 | phase, where the number is
// Lane::cooperative_number(). An operation (or a slice of one) is complete when `state` has
// advanced to the `gathering` phase of the next number. A rank that was descheduled may find
// `state` several numbers ahead.
struct LaneBlock {
  enum Phase : std::uint32_t { gathering = 0, open = 1, failed = 3 };
  [[nodiscard]] static constexpr std::uint32_t state_of(std::uint32_t number, Phase phase) {
    return number << 2 | phase;
  }

  // The ordinal plus one of the lane that uses this storage; 0 if the storage is free.
  alignas(64) std::atomic<std::uint64_t> key{0};
  std::uint32_t released = 0;  // number of ranks that have released the lane; guarded by pool_lock
  alignas(64) std::atomic<std::uint32_t> state{0};
  alignas(64) std::atomic<std::uint64_t> claimed{0};  // number << 32 | TileClaims
  alignas(64) std::atomic<std::uint32_t> tiles_done{0};
  alignas(64) Doorbell bell;
};

struct alignas(64) CurrentTile {
  std::atomic<std::uint32_t> number{0};  // of the tile that the rank is storing, plus one; 0: none
  // The cooperative number of the last slice whose share the rank has computed.
  std::atomic<std::uint32_t> share{0};
};

// A rank's progress in a lane's operations on host memory. Each counter is the number of slices for
// which the rank has completed one step. `filled`: the rank has filled its staging buffer
// (HostPath) or added its data to the accumulator (HostChain). `folded`: the rank has reduced its
// share (HostPath). `released`: the rank no longer accesses other ranks' staging buffers or, in
// HostReads, their input. HostChain and HostReads also advance the counters that they do not use.
// The counters start at ControlHeader::first_number and wrap. `filled` is reset if the operation
// takes the cooperative path after all.
struct alignas(64) SliceCounters {
  std::atomic<std::uint32_t> filled{0};
  std::atomic<std::uint32_t> folded{0};
  std::atomic<std::uint32_t> released{0};
};

struct ControlHeader {
  std::uint32_t ranks = 0;
  std::uint32_t first_number = 0;  // of every lane's first operation
  alignas(64) FaultRecord fault;
  alignas(64) std::atomic<std::uint32_t> pool_lock{0};  // rank + 1 of the holder
  // Lanes at and after this index have never been used; reading one would allocate a page.
  std::atomic<std::uint32_t> lane_end{0};
  RankRecord records[kMaxRanks];
};

// Locates the parts of a mapped control block.
class ControlBlock {
 public:
  [[nodiscard]] static std::size_t bytes(int ranks) {
    const auto count = static_cast<std::size_t>(ranks);
    const std::size_t payloads =
        uses_host_payloads(ranks) ? kHostPayloadLanes * host_payload_bytes(ranks) : 0;
    return sizeof(ControlHeader) + kLanes * lane_bytes(ranks) + count * count * sizeof(Mailbox) +
           payloads;
  }
  // Creates a control block and returns its memory file. Tests pass a `first_number` just below the
  // wrap-around. Throws Error(hcclSystemError).
  [[nodiscard]] static FileDescriptor create(int ranks, std::uint32_t first_number = 0);

  explicit ControlBlock(std::byte* base) : base_(base) {}

  [[nodiscard]] ControlHeader& header() const { return *reinterpret_cast<ControlHeader*>(base_); }
  [[nodiscard]] LaneBlock& lane(std::uint32_t index) const {
    return *reinterpret_cast<LaneBlock*>(lane_base(index));
  }
  // Returns an array with one element per rank.
  [[nodiscard]] CurrentTile* current_tiles(std::uint32_t index) const {
    return reinterpret_cast<CurrentTile*>(lane_base(index) + sizeof(LaneBlock));
  }
  [[nodiscard]] Mailbox& mailbox(int source, int destination) const {
    const std::size_t index =
        static_cast<std::size_t>(source) * header().ranks + static_cast<std::size_t>(destination);
    return *reinterpret_cast<Mailbox*>(lane_base(kLanes) + index * sizeof(Mailbox));
  }
  // Returns an array with one element per rank.
  [[nodiscard]] SliceCounters* slice_counters(std::uint32_t index) const {
    return reinterpret_cast<SliceCounters*>(lane_base(index) + sizeof(LaneBlock) +
                                            header().ranks * sizeof(CurrentTile));
  }
  // Returns an array of kSlots rows, each with one slot per rank.
  [[nodiscard]] std::byte* slots(std::uint32_t index) const {
    return lane_base(index) + sizeof(LaneBlock) +
           header().ranks * (sizeof(CurrentTile) + sizeof(SliceCounters));
  }
  // Returns an array of kSlots rows, each with one payload of kHostPayloadStride bytes per rank, or
  // null if the lane has none. Only operations on host memory touch the array's pages.
  [[nodiscard]] std::byte* host_payloads(std::uint32_t index) const {
    const auto ranks = static_cast<int>(header().ranks);
    if (index >= kHostPayloadLanes || !uses_host_payloads(ranks)) return nullptr;
    const std::size_t mailboxes = std::size_t{header().ranks} * header().ranks * sizeof(Mailbox);
    return lane_base(kLanes) + mailboxes + index * host_payload_bytes(ranks);
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
           static_cast<std::size_t>(ranks) *
               (sizeof(CurrentTile) + sizeof(SliceCounters) + kSlots * Slot::kStride);
  }
  [[nodiscard]] static std::size_t host_payload_bytes(int ranks) {
    return static_cast<std::size_t>(ranks) * kSlots * kHostPayloadStride;
  }
  [[nodiscard]] std::byte* lane_base(std::uint32_t index) const {
    return base_ + sizeof(ControlHeader) + index * lane_bytes(static_cast<int>(header().ranks));
  }

  std::byte* base_;
};

}  // namespace hccl::node
