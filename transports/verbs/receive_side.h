// SPDX-License-Identifier: Apache-2.0
// The half of a stream that comes in: through a ring, or straight to where it was invited.
#pragma once

#include "verbs/invitation.h"
#include "verbs/queue_pair.h"
#include "verbs/registration_cache.h"
#include "verbs/stream_memory.h"
#include "verbs/windows.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hccl::verbs {

class ReceiveSide {
 public:
  // All outlive it. `ring` and `notes`: the peer's.
  ReceiveSide(QueuePair& pair, const StreamMemory& memory, RegistrationCache& cache,
              const QueuePair::Target& ring, const QueuePair::Target& notes)
      : pair_(pair), memory_(memory), cache_(cache), ring_(ring), notes_(notes) {}

  // Data, by either way. False if they cannot be right.
  [[nodiscard]] bool arrive(const Message& message);
  // Returns whether something has come that has been neither lent nor taken.
  [[nodiscard]] bool has_more() const {
    return window_.held() > window_.lent() || host_.straight() > 0;
  }
  // Returns the bytes taken from the stream since the beginning.
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] std::size_t held() const { return window_.held(); }
  [[nodiscard]] std::size_t lent() const { return window_.lent(); }

  // Lends at most `most` of the bytes that have come, from the first unreleased one on. Throws
  // Error(hcclInternalError) while a destination has been invited to and is not full.
  [[nodiscard]] std::span<const std::byte> lend(std::size_t most);
  // Returns how many were lent of these.
  std::size_t release(std::size_t count);
  // Moves what has come to the destination, and invites the rest of it if there is nothing more.
  [[nodiscard]] std::size_t take(std::span<std::byte> destination);
  // Tells the peer what has been taken, if it is much; what can wait, when this end is idle.
  void tell_credit(bool idle);

 private:
  [[nodiscard]] std::size_t take_some(std::span<std::byte> destination);
  void invite(std::span<std::byte> destination);

  QueuePair& pair_;
  const StreamMemory& memory_;
  RegistrationCache& cache_;
  const QueuePair::Target ring_;
  const QueuePair::Target notes_;
  ReceiveWindow window_;
  Host host_;
  std::shared_ptr<Registration> invited_;  // the registration of what was invited to
  const std::byte* awaited_ = nullptr;     // where the next invited byte goes
  std::uint64_t taken_ = 0;                // of the stream, by whichever way
  std::uint32_t invitations_ = 0;          // sent
  std::uint32_t seen_ = 0;                 // of these, as far as the peer has told
};

}  // namespace hccl::verbs
