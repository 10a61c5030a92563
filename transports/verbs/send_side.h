// SPDX-License-Identifier: Apache-2.0
// The half of a stream that goes out: from registered memory of the program as it lies there, else
// out of a ring of our own; to where the peer has invited the bytes, else to its ring.
#pragma once

#include "verbs/invitation.h"
#include "verbs/queue_pair.h"
#include "verbs/registration_cache.h"
#include "verbs/stream_memory.h"
#include "verbs/windows.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

namespace hccl::verbs {

// The longest message: large enough that the device is busy meanwhile, small enough that the
// receiver folds one while the next is on its way.
constexpr std::size_t kSlice = std::size_t{64} << 10;
// Places among the writes that are no data's: for credits, invitations and the last write of all.
constexpr std::uint32_t kPlacesForOthers = 2 * (kMostCredits + kMostInvitations);

class SendSide {
 public:
  // All outlive it. `ring`: the peer's.
  SendSide(QueuePair& pair, const StreamMemory& memory, RegistrationCache& cache,
           const QueuePair::Target& ring)
      : pair_(pair), memory_(memory), cache_(cache), ring_(ring) {}

  // Takes a prefix of the parts and returns its size. Throws Error.
  [[nodiscard]] std::size_t send(std::span<const std::span<const std::byte>> parts);
  // Gives back what writes that are complete have held.
  void settle();
  // Returns whether the program's memory is read no more.
  [[nodiscard]] bool flushed() const { return leased_ == 0; }
  // How many bytes could be taken now.
  [[nodiscard]] std::size_t room() const;
  // Takes a credit message of the peer. Returns false if it cannot be right.
  [[nodiscard]] bool credit(const Message& message) { return window_.credit(message); }
  void invited() { guest_.invite(memory_.invitation(invitations_++)); }
  // Nothing is held any more: the queue pair has ended.
  void abandon();
  // Returns the bytes written to the stream since the beginning.
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  // Where the bytes from a position on go in one write, and how many at most.
  struct Way {
    QueuePair::Target target;
    std::size_t most = 0;
    bool straight = false;
  };
  // The resources that a write holds until it is complete.
  struct Held {
    std::uint64_t write = 0;
    std::uint64_t staged_end = 0;
    std::shared_ptr<Registration> registration;
  };

  [[nodiscard]] Way way(std::uint64_t position) const;
  [[nodiscard]] std::size_t send_from(std::span<const std::byte> part);
  [[nodiscard]] std::size_t send_registered(std::span<const std::byte> part);
  [[nodiscard]] std::size_t stage(std::span<const std::byte> part);
  void write_staged();
  [[nodiscard]] std::uint64_t write(std::span<const std::byte> bytes, std::uint32_t key,
                                    const Way& way);

  QueuePair& pair_;
  const StreamMemory& memory_;
  RegistrationCache& cache_;
  const QueuePair::Target ring_;
  SendWindow window_;
  Guest guest_;
  std::uint32_t invitations_ = 0;  // seen
  std::uint64_t written_ = 0;      // of the stream, by whichever way
  std::size_t unwritten_ = 0;      // staged, not written yet
  std::uint64_t staged_ = 0;       // bytes that have been staged, and what of them is free again
  std::uint64_t unstaged_ = 0;
  std::deque<Held> held_;
  std::size_t leased_ = 0;  // of these, the program's memory
};

}  // namespace hccl::verbs
