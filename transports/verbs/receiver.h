// SPDX-License-Identifier: Apache-2.0
// The receiving half of a stream. Bytes arrive in the ring, or directly in an advertised buffer.
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

class Receiver {
 public:
  // `pair`, `memory` and `cache` must outlive the receiver. `ring` and `adverts` are in the peer's
  // memory. `window`: closed, or null if the device has none; must be destroyed before the
  // receiver.
  Receiver(QueuePair& pair, const StreamMemory& memory, RegistrationCache& cache,
           const QueuePair::Target& ring, const QueuePair::Target& adverts, ibv_mw* window)
      : pair_(pair),
        memory_(memory),
        cache_(cache),
        ring_(ring),
        adverts_target_(adverts),
        window_of_advert_(window) {}

  // Accounts for a data or direct message. Returns false if the message is invalid, for example
  // because the peer has written more than it may.
  [[nodiscard]] bool arrive(const Immediate& message);
  // Returns whether bytes have arrived that have been neither lent nor consumed.
  [[nodiscard]] bool has_more() const {
    return window_.held() > window_.lent() || receiver_view_.direct() > 0;
  }
  // Returns the number of bytes consumed since the beginning of the stream.
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] std::size_t held() const { return window_.held(); }
  [[nodiscard]] std::size_t lent() const { return window_.lent(); }

  // Lends at most `most` of the arrived bytes, starting at the first unreleased byte. Throws
  // Error(hcclInternalError) while an advertised destination is not full.
  [[nodiscard]] std::span<const std::byte> lend(std::size_t most);
  // Releases up to `count` lent bytes and returns how many it released.
  std::size_t release(std::size_t count);
  // Copies arrived bytes from the ring to the destination, and consumes those that the peer has
  // written there directly. Returns the number of both together. If no advert is open and the rest
  // of the destination has at least kLeastDirect bytes, tries to advertise that rest. The peer may
  // write there until all advertised bytes have arrived. Throws Error(hcclInternalError) if bytes
  // have arrived in another destination.
  [[nodiscard]] std::size_t take(std::span<std::byte> destination);
  // Returns credit to the peer if a batch is due and can be posted. Unless `idle`, defers credit
  // that can wait. The caller sets `idle` if its last poll has found no messages.
  void return_credit(bool idle);
  // Releases the registrations of adverts whose windows have been closed.
  void release_completed();
  // Returns whether the peer can no longer write to destinations that are full.
  [[nodiscard]] bool closed() const { return closing_.empty() || abandoned_; }
  // Makes closed() true. Call it only after the queue pair has been cut, because the queue pair may
  // then never close the windows.
  void abandon() { abandoned_ = true; }

 private:
  [[nodiscard]] std::size_t take_some(std::span<std::byte> destination);
  void advertise(std::span<std::byte> destination);
  void close_advert();

  QueuePair& pair_;
  const StreamMemory& memory_;
  RegistrationCache& cache_;
  const QueuePair::Target ring_;
  const QueuePair::Target adverts_target_;
  ibv_mw* const window_of_advert_;
  ReceiveWindow window_;
  ReceiverView receiver_view_;
  std::shared_ptr<Registration> advertised_;  // the registration of the open advert
  // The registrations of closed adverts until the window is closed, oldest first.
  struct Closing {
    std::uint64_t request = 0;
    std::shared_ptr<Registration> registration;
  };
  std::deque<Closing> closing_;
  bool abandoned_ = false;
  const std::byte* awaited_ = nullptr;  // the destination of the next advertised byte
  std::uint64_t taken_ = 0;             // bytes consumed from the ring or received directly
  std::uint32_t adverts_ = 0;           // number of adverts sent
  std::uint32_t seen_ = 0;              // number of adverts that the peer has acknowledged
};

}  // namespace hccl::verbs
