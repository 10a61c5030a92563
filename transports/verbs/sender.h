// SPDX-License-Identifier: Apache-2.0
// The sending half of a stream. Reads long ranges of registered memory in place, and copies all
// other data to a staging ring first. Writes to the buffer that the peer has advertised, or else to
// the peer's ring.
#pragma once

#include "verbs/advert.h"
#include "verbs/flow_control.h"
#include "verbs/queue_pair.h"
#include "verbs/registration_cache.h"
#include "verbs/stream_memory.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

namespace hccl::verbs {

// Maximum size of a message: large enough to keep the NIC busy, and small enough that the receiver
// can reduce one message while the next one is in flight.
constexpr std::size_t kSlice = std::size_t{64} << 10;
// Number of requests reserved for credits, adverts and the last write of a stream.
constexpr std::uint32_t kReservedRequests = 2 * (kMaxCredits + kMaxAdverts * kAdvertRequests);

class Sender {
 public:
  // `pair`, `memory` and `cache` must outlive the sender. `ring` is in the peer's memory.
  Sender(QueuePair& pair, const StreamMemory& memory, RegistrationCache& cache,
         const QueuePair::Target& ring)
      : pair_(pair), memory_(memory), cache_(cache), ring_(ring) {}

  // Sends a prefix of the concatenated parts and returns its size. Does not block. Throws
  // Error(hcclSystemError).
  [[nodiscard]] std::size_t send(std::span<const std::span<const std::byte>> parts);
  // Releases the resources of completed writes.
  void release_completed();
  // Returns whether no write in flight reads the program's memory.
  [[nodiscard]] bool flushed() const { return leased_ == 0; }
  // Returns an upper bound on the number of bytes that send() would accept now.
  [[nodiscard]] std::size_t room() const;
  // Applies a credit message. Returns false if it covers more than is unacknowledged.
  [[nodiscard]] bool credit(const Immediate& message) { return window_.credit(message); }
  // Reads the next advert, after its arrival has been reported.
  void advertised() { sender_view_.update(memory_.advert(adverts_++)); }
  // Releases the resources of all writes. Call it only after the queue pair has been cut, or after
  // the peer has consumed all bytes.
  void abandon();
  // Returns the number of bytes written to the stream since its beginning.
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  // The target of the next write, and the maximum number of bytes to write there.
  struct WriteTarget {
    QueuePair::Target memory;
    std::size_t most = 0;
    bool direct = false;
  };
  // The resources that a write holds until it has completed.
  struct Held {
    std::uint64_t write = 0;
    std::uint64_t staged_end = 0;
    std::shared_ptr<Registration> registration;
  };

  [[nodiscard]] WriteTarget next_target(std::uint64_t position) const;
  [[nodiscard]] std::size_t send_from(std::span<const std::byte> part);
  [[nodiscard]] std::size_t send_registered(std::span<const std::byte> part);
  [[nodiscard]] std::size_t stage(std::span<const std::byte> part);
  void write_staged();
  [[nodiscard]] std::uint64_t write(std::span<const std::byte> bytes, std::uint32_t key,
                                    const WriteTarget& to);

  QueuePair& pair_;
  const StreamMemory& memory_;
  RegistrationCache& cache_;
  const QueuePair::Target ring_;
  SendWindow window_;
  SenderView sender_view_;
  std::uint32_t adverts_ = 0;   // adverts read
  std::uint64_t written_ = 0;   // bytes written to the ring or directly
  std::size_t unwritten_ = 0;   // staged bytes that no write covers yet
  std::uint64_t staged_ = 0;    // bytes staged since the beginning
  std::uint64_t unstaged_ = 0;  // staged bytes whose space is free again
  std::deque<Held> held_;       // for the writes in flight, oldest first
  std::size_t leased_ = 0;      // entries of held_ with a registration
};

}  // namespace hccl::verbs
