// SPDX-License-Identifier: Apache-2.0
// A reliable connected (RC) queue pair with its completion queue. Every write() carries a 32-bit
// immediate.
#pragma once

#include "base/deadline.h"
#include "verbs/device.h"
#include "verbs/qp_exchange.h"
#include "verbs/queue_pair_attributes.h"
#include "verbs/verbs_errors.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace hccl::verbs {

// The failure of a queue pair; `text` is empty if there is none. Unless the peer is lost, the NIC
// or this library is at fault.
struct PairFailure {
  bool peer_lost = false;
  std::string text;
};

// Destroys verbs objects. Ignores failures, such as those after the removal of the NIC.
struct Destroy {
  const VerbsLibrary* library = nullptr;

  void operator()(ibv_comp_channel* channel) const { library->destroy_comp_channel(channel); }
  void operator()(ibv_cq* completions) const { library->destroy_cq(completions); }
  void operator()(ibv_qp* pair) const { library->destroy_qp(pair); }
};

// Thread safety: one thread at a time.
class QueuePair {
 public:
  struct Depths {
    std::uint32_t requests = 0;  // maximum number of incomplete writes, binds and invalidations
    std::uint32_t arrivals = 0;  // maximum number of arrived writes that have not been polled
    std::uint32_t inline_bytes = 0;
  };
  struct Target {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
  };

  // Creates the queue pair and its completion queue. Throws Error(hcclSystemError).
  QueuePair(std::shared_ptr<RdmaDevice> device, const Depths& depths);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  [[nodiscard]] std::uint32_t number() const { return pair_->qp_num; }
  [[nodiscard]] std::uint32_t first_packet() const { return first_packet_; }
  // Connects to the peer's queue pair. Throws Error(hcclSystemError), for example if the peer
  // cannot be addressed.
  void connect(const QpInfo& peer, const ConnectionEnds& ends);

  // Returns the number of writes, binds and invalidations that can be posted now. poll() makes room
  // for more.
  [[nodiscard]] std::uint32_t free_requests() const {
    return depths_.requests - static_cast<std::uint32_t>(posted_ - completed_);
  }
  // Returns whether write() copies `bytes` bytes before it returns.
  [[nodiscard]] bool copies(std::size_t bytes) const { return bytes <= depths_.inline_bytes; }
  // Posts a write of `bytes` to the peer's memory, with an immediate for the peer's completion
  // queue. Returns the number of the write. Bytes that are not copied (see copies()) must not
  // change until completed() has reached that number. Throws Error(hcclSystemError).
  std::uint64_t write(std::span<const std::byte> bytes, std::uint32_t local_key,
                      const Target& target, std::uint32_t immediate);
  // Opens a window: posts a request that binds it to `memory`, a part of `registered`, so that the
  // peer can write there with the key next_key(window). The NIC carries the request out before all
  // later ones. The window must be closed.
  // Returns the number of the request. Throws Error(hcclSystemError).
  std::uint64_t open(ibv_mw& window, const Registration& registered, std::span<std::byte> memory);
  // Closes a window: posts a request that invalidates its key. The peer can write until completed()
  // has reached the returned number, and the registration must exist until then. Throws
  // Error(hcclSystemError).
  std::uint64_t close(ibv_mw& window);
  // Returns the key for the memory to which the window is opened next.
  [[nodiscard]] static std::uint32_t next_key(const ibv_mw& window) {
    return ibv_inc_rkey(window.rkey);
  }
  // Returns the number of the last completed request. If it is a write, then this write and all
  // earlier ones have arrived at the peer.
  [[nodiscard]] std::uint64_t completed() const { return completed_; }

  // Returns the next immediates that have arrived, in order and at most kBatch. They stay valid
  // until the next poll(). Check failure() afterwards. Throws Error(hcclSystemError) if receive
  // requests cannot be posted.
  [[nodiscard]] std::span<const std::uint32_t> poll();
  // Returns whether the last poll() may have left completions in the queue. The NIC sends no
  // notification for them.
  [[nodiscard]] bool has_more() const { return has_more_; }
  [[nodiscard]] const PairFailure& failure() const { return failure_; }

  // Returns the descriptor that becomes readable at the first completion after arm().
  [[nodiscard]] int descriptor() const { return channel_->fd; }
  // Requests a notification for the next completion. Returns false if the NIC fails. After arm(),
  // the caller must poll until no completion is left; then it may sleep.
  [[nodiscard]] bool arm() noexcept;
  // Acknowledges the notifications that have arrived.
  void drain_notifications() noexcept;

  // Aborts all traffic. After cut() has returned, the peer can write nothing more, and posted
  // writes have completed or never will.
  void cut() noexcept;
  // Blocks until all writes have been acknowledged, the deadline has passed, the queue pair or the
  // NIC has failed, or the socket `hung_up` is readable, because the peer has sent its final
  // acknowledgement or closed the connection. Does not wait if free_requests() is 0.
  void drain(Deadline deadline, int hung_up) noexcept;

 private:
  static constexpr std::size_t kBatch = 32;
  // Receive requests are replenished in batches of this size. The queue's capacity is the maximum
  // number of writes that the peer may have in flight plus one batch, so that every write finds a
  // request even while up to a batch has yet to be replenished.
  static constexpr std::uint32_t kReceiveBatch = 16;

  template <class Object>
  [[nodiscard]] std::unique_ptr<Object, Destroy> own(Object* object, const char* what) const;
  void create_pair();
  void modify(const QueuePairChange& change, QueuePairState::Phase phase, const char* step);
  void replenish_receives();
  [[nodiscard]] int post(ibv_send_wr& request) noexcept;
  std::uint64_t post_or_throw(ibv_send_wr& request);
  [[nodiscard]] std::size_t reap() noexcept;
  void fail(const ibv_wc& completion) noexcept;

  std::shared_ptr<RdmaDevice> device_;
  Depths depths_;
  ConnectionEnds ends_;
  // Destroyed in the reverse order of declaration.
  std::unique_ptr<ibv_comp_channel, Destroy> channel_;
  std::unique_ptr<ibv_cq, Destroy> completions_;
  std::unique_ptr<ibv_qp, Destroy> pair_;
  QueuePairState state_;
  std::uint32_t first_packet_ = 0;
  std::uint32_t missing_receives_ = 0;
  std::uint64_t posted_ = 0;     // number of requests posted
  std::uint64_t completed_ = 0;  // number of the last request known to be complete
  bool armed_ = false;
  bool has_more_ = false;
  bool only_flushed_ = false;  // whether failure_ describes a flushed request
  PairFailure failure_;
  std::array<std::uint32_t, kBatch> immediates_{};
};

}  // namespace hccl::verbs
