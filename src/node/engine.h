// SPDX-License-Identifier: Apache-2.0
// The cooperative engine: collectives between ranks that map each other's memory. Small operations
// travel in the slots; larger ones are cut into tiles that whichever ranks are running compute for
// everybody.
#pragma once

#include "base/wait_limit.h"
#include "call/collective_call.h"
#include "call/point_to_point.h"
#include "device/arena.h"
#include "node/lookahead.h"
#include "node/node_segment.h"
#include "node/staging.h"
#include "node/tile_plan.h"
#include "reduce/reduce.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hccl::node {

struct EngineOptions {
  std::uint64_t cache_bytes = 0;  // operations on more than this store past the cache
  std::chrono::milliseconds operation_timeout{0};  // 0: never
  std::chrono::milliseconds hang_report{0};        // 0: never
};

class PendingMessages;

// A message that another rank has offered.
struct Offer {
  int source = -1;
  std::uint64_t bytes = 0;
};

// Where sends and receives stand in their stream: before the next collective of a lane. The
// messages in flight is for the sends and receives of this stream and communicator alone.
struct StreamPlace {
  std::uint32_t ordinal = 0;   // of the lane that the stream has, or would get now
  const Lane* lane = nullptr;  // null if no collective has been queued on the stream
  PendingMessages* pending = nullptr;
};

class Engine {
 public:
  // `segment` must outlive the engine.
  Engine(NodeSegment& segment, const EngineOptions& options);

  // Runs one operation, on a stream's turn. `ahead`: the calls that follow on this lane, or null.
  // `staging`: copies this rank's host memory, or null. Returns true once the operation is
  // complete. Unless the wait budget of `ahead` is unlimited it may return false instead of
  // blocking: call it again with the same arguments to resume. Throws Error if the operation
  // failed.
  bool execute(Lane& lane, const CollectiveCall& call, CallLookahead* ahead = nullptr,
               Staging* staging = nullptr);

  // Assigns the call its sequence number among the calls of its direction with its peer, and
  // announces it to the peer. `lane`: the ordinal of its lane plus one, or 0 if it has none yet.
  // Call in program order. Thread safety: one thread at a time.
  void number(PointToPoint& call, std::uint32_t lane);
  // Runs sends and receives with other ranks concurrently, on a stream's turn. `place`: the
  // position of the calls in their stream. `ahead`: the groups that follow them there. `stage`:
  // staging buffer of kExchangeStageBytes for calls on host memory, or 0 if there are none. Returns
  // as execute() does. Throws Error if one of the calls failed.
  bool exchange(const StreamPlace& place, std::span<const PointToPoint> calls,
                GroupLookahead& ahead, device::DeviceAddress stage = 0);

  // Returns a message for which no receive has a number yet, if there is one. Looks at the ranks
  // round robin, from `first` on. Does not block. Thread safety: one thread at a time, and not
  // beside number(), so that nobody takes the message meanwhile.
  [[nodiscard]] std::optional<Offer> find_offer(int first) const;
  // Blocks until `ready()` returns true, a message has been offered to this rank or taken from it,
  // the communicator has failed, or `limit` has passed.
  template <class Ready>
  void await_mail(std::chrono::nanoseconds limit, Ready ready) {
    segment_.own_record().mail.sleep(limit, [&] { return fault_.raised() || ready(); });
  }

  [[nodiscard]] static std::shared_ptr<PendingMessages> make_pending_messages();
  // How long calls of this rank wait for others, from now on.
  [[nodiscard]] WaitLimit& wait_limit() { return wait_limit_; }

  // Returns true if a call on device memory goes through the slots.
  [[nodiscard]] static bool is_eager(const CollectiveCall& call, int ranks) {
    return send_bytes(call, ranks) <= Slot::kPayloadBytes;
  }

 private:
  struct Operation;
  class Exchange;

  void post(Operation& op);
  void prepost(Operation& op);
  [[nodiscard]] device::Content resolve_content(std::uint64_t file_offset, std::uint64_t bytes);
  void publish(Operation& op) const;
  void ring_if_complete(const Operation& op);
  [[nodiscard]] bool in_page_tables(const Operation& op);
  [[nodiscard]] bool all_arrived(const Lane& lane, std::uint32_t number) const;

  bool run_eager(Operation& op);
  device::Content load(device::DeviceAddress address, std::uint64_t bytes, std::byte* payload);
  void store_eager_result(const Operation& op);

  bool run_cooperative(Operation& op);
  bool run_slice(Operation& op);
  bool next_slice(Operation& op);
  void agree_on_slices(Operation& op);
  void open_operation(Operation& op);
  void work(Operation& op);
  std::optional<std::uint32_t> claim_tile(Operation& op) const;
  void run_tile(Operation& op, std::uint32_t number);
  void exchange_tile(Operation& op, const Tile& tile);
  [[nodiscard]] reduce::StorePolicy store_policy(const Operation& op) const;
  const std::byte* source(const Operation& op, int rank, int chunk, const Tile& tile);
  const std::byte* readable(int rank, std::uint64_t at, std::uint64_t bytes,
                            device::Content content, bool mapped);
  std::byte* destination(const Operation& op, int rank, int chunk, const Tile& tile);
  template <class Visit>
  bool for_peer_buffers(const Operation& op, Visit visit);
  bool map_peers(Operation& op);
  void leave(const Operation& op);

  template <class Ready>
  bool wait(Operation& op, Ready ready, WaitBudget wait_budget = WaitBudget::unlimited);
  template <class Ready>
  void sleep(Operation& op, Ready ready);
  void check_time_limits(Operation& op);
  [[nodiscard]] std::chrono::milliseconds note_attendance(const Operation& op);
  [[nodiscard]] std::vector<int> missing_ranks(const Lane& lane) const;
  // Returns which ranks hold the operation up, and how.
  [[nodiscard]] std::string delay_text(const Operation& op) const;

  [[nodiscard]] Mailbox& mailbox_to(int peer) const { return mailboxes_[rank_ * size_ + peer]; }
  [[nodiscard]] Mailbox& mailbox_from(int peer) const { return mailboxes_[peer * size_ + rank_]; }

  [[nodiscard]] bool descriptors_agree(const Operation& op) const;
  [[nodiscard]] std::string mismatch_text(const Operation& op) const;
  // The slots of a stream's collective to come; null if nobody has begun it.
  [[nodiscard]] const Slot* find_slot(const StreamPlace& place, int rank) const;
  // The calls of those who have arrived at it.
  [[nodiscard]] std::string calls_text(const StreamPlace& place) const;

  NodeSegment& segment_;
  Fault& fault_;
  device::Arena& arena_;
  const int rank_;
  const int size_;
  Mailbox* const mailboxes_;                             // by source and destination
  std::vector<std::uint64_t> next_send_, next_receive_;  // by peer
  const std::uint64_t cache_bytes_;
  WaitLimit wait_limit_;
  const std::chrono::milliseconds hang_report_;
  std::atomic<bool> hang_reported_{false};
};

}  // namespace hccl::node
