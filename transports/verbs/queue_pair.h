// SPDX-License-Identifier: Apache-2.0
// A reliable connected queue pair with its completion queue: writes that carry 32 bits each.
#pragma once

#include "base/deadline.h"
#include "verbs/causes.h"
#include "verbs/device.h"
#include "verbs/introduction.h"
#include "verbs/queue_pair_attributes.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace hccl::verbs {

// The pair has failed: what happened, and whether the peer is lost by it or we are at fault.
struct PairFailure {
  bool peer_lost = false;
  std::string text;
};

// Ends the device's objects; fails only where the device has gone.
struct Destroy {
  const VerbsLibrary* library = nullptr;

  void operator()(ibv_comp_channel* channel) const { library->destroy_comp_channel(channel); }
  void operator()(ibv_cq* completions) const { library->destroy_cq(completions); }
  void operator()(ibv_qp* pair) const { library->destroy_qp(pair); }
};

// One thread.
class QueuePair {
 public:
  struct Depths {
    std::uint32_t writes = 0;    // not completed, at most
    std::uint32_t arrivals = 0;  // writes of the peer that have not been taken, at most
    std::uint32_t inline_bytes = 0;
  };
  struct Target {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
  };

  // Throws Error(hcclSystemError).
  QueuePair(std::shared_ptr<Device> device, const Depths& depths);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  [[nodiscard]] std::uint32_t number() const { return pair_->qp_num; }
  [[nodiscard]] std::uint32_t first_packet() const { return first_packet_; }
  // Throws Error(hcclSystemError) where the peer cannot be addressed.
  void connect(const Facts& peer, const Link& link);

  // How many writes can be posted now; poll() makes more.
  [[nodiscard]] std::uint32_t free_writes() const {
    return depths_.writes - static_cast<std::uint32_t>(posted_ - completed_);
  }
  // Returns whether a write of `bytes` bytes copies them at once.
  [[nodiscard]] bool copies(std::size_t bytes) const { return bytes <= depths_.inline_bytes; }
  // Writes `bytes` to the peer's memory, and the immediate to its completion queue; returns the
  // write's number. Where they are not copied they must stay as they are until it is complete.
  // Throws Error(hcclSystemError).
  std::uint64_t write(std::span<const std::byte> bytes, std::uint32_t local_key,
                      const Target& target, std::uint32_t immediate);
  // All writes up to this number are complete: the peer has the bytes.
  [[nodiscard]] std::uint64_t completed() const { return completed_; }

  // The immediates that have come since, in their order; empty if none have, or the pair has
  // failed.
  [[nodiscard]] std::span<const std::uint32_t> poll();
  // Returns whether the last poll() has left completions: no notification tells of those.
  [[nodiscard]] bool has_more() const { return has_more_; }
  [[nodiscard]] const PairFailure& failure() const { return failure_; }

  // For a sleep: the descriptor becomes readable at the next completion.
  [[nodiscard]] int descriptor() const { return channel_->fd; }
  // From now on the next completion rings; the caller polls until nothing is left before it sleeps.
  // False if the device cannot.
  [[nodiscard]] bool arm() noexcept;
  // Takes the rings.
  void take_rings() noexcept;

  // Ends the traffic both ways: from now on the peer writes nothing more, and what was posted is
  // complete or never will be.
  void cut() noexcept;
  // Waits until all writes have been acknowledged, the deadline has passed, the pair has failed or
  // `hung_up` (a socket) has been closed by the peer.
  void drain(Deadline deadline, int hung_up) noexcept;

 private:
  static constexpr std::size_t kBatch = 32;
  // Receive requests are posted in batches of this size, not one by one between a message and its
  // answer. The queue holds one batch more than the peer needs and is refilled when one is missing.
  static constexpr std::uint32_t kRequestsAtOnce = 16;

  template <class Object>
  [[nodiscard]] std::unique_ptr<Object, Destroy> own(Object* object, const char* what) const;
  void create_pair();
  void modify(const QueuePairChange& change, QueuePairState::Phase phase, const char* step);
  void post_requests();
  [[nodiscard]] int post(ibv_send_wr& request) noexcept;
  [[nodiscard]] std::size_t reap() noexcept;
  void fail(const ibv_wc& completion) noexcept;

  std::shared_ptr<Device> device_;
  Depths depths_;
  Link link_;
  // Ended in the opposite order.
  std::unique_ptr<ibv_comp_channel, Destroy> channel_;
  std::unique_ptr<ibv_cq, Destroy> completions_;
  std::unique_ptr<ibv_qp, Destroy> pair_;
  QueuePairState state_;
  std::uint32_t first_packet_ = 0;
  std::uint32_t missing_requests_ = 0;
  std::uint64_t posted_ = 0;     // writes
  std::uint64_t completed_ = 0;  // of these, as far as the device has told
  bool armed_ = false;
  bool has_more_ = false;
  PairFailure failure_;
  std::array<std::uint32_t, kBatch> immediates_{};
};

}  // namespace hccl::verbs
