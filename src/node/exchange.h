// SPDX-License-Identifier: Apache-2.0
// The sends and receives of one group while a rank is in it. Private to the engine's files.
#pragma once

#include "base/deadline.h"
#include "base/wait_limit.h"
#include "node/engine.h"
#include "node/pending_messages.h"

#include <span>
#include <string>
#include <vector>

namespace hccl::node {

class Engine::Exchange {
 public:
  Exchange(Engine& engine, const StreamPlace& place, std::span<const PointToPoint> calls,
           GroupLookahead& ahead, device::DeviceAddress stage);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // To its end; false if it is to be left. Throws the communicator's fault.
  bool run();

 private:
  using Item = MessageItem;
  using State = MessageItem::State;
  // Some bytes of a message in the sender's memory file.
  struct Piece {
    std::uint64_t position;
    std::uint64_t bytes;
    std::uint64_t offset;
    device::Content content;
  };

  [[nodiscard]] Item item_of(const PointToPoint& call) const;
  [[nodiscard]] bool ready(const Item& item) const;
  [[nodiscard]] bool may_return_early() const;
  void advance(Item& item);
  const device::Placement& locate(Item& item) const;
  void offer(Item& item);
  void check_match(const Item& item);
  void begin_taking(Item& item);
  void take(Item& item);
  void finish(const Item& item);
  void copy_short(const Item& item);
  void copy_piece(const Item& item, const Piece& piece);
  void copy_to_device(const Item& item, const Piece& piece);
  void copy_to_host(const Item& item, const Piece& piece);
  void copy_short_to_host(const Item& item);

  [[nodiscard]] static bool is_streamed(const Item& item);
  [[nodiscard]] bool can_fill(const Item& item) const;
  void begin_draining(Item& item);
  void load_from_host(const PointToPoint& call, Message& message);
  void fill(Item& item);
  void drain(Item& item);

  [[nodiscard]] bool look_ahead();
  [[nodiscard]] bool collect(std::span<const PointToPoint> calls);
  [[nodiscard]] bool advance_ahead();
  [[nodiscard]] bool offer_ahead();
  [[nodiscard]] bool take_ahead();
  [[nodiscard]] static bool cannot_block(const Item& item);
  static void tell_awaited(std::span<const Item> items);

  void tell(int peer) { news_ |= std::uint64_t{1} << peer; }
  void ring_told();

  void sleep();
  void check_time_limits();
  void note_waiting();
  void check_presence(const Item& item) const;
  [[nodiscard]] const Item* blocked_by_collective() const;
  [[nodiscard]] std::string delay_text() const;
  [[nodiscard]] RankRecord& record(int rank) const { return engine_.segment_.record(rank); }

  Engine& engine_;
  const StreamPlace place_;
  GroupLookahead& ahead_;
  const device::DeviceAddress stage_;  // of this stream, for host memory; 0 if there is none
  const Item* fills_ = nullptr;        // the send that has the stage
  PendingMessages& pending_;
  bool skipped_ = false;   // what is in the window
  bool seen_all_ = false;  // of what can be begun
  bool failed_ = true;     // unless it comes to an end, or is left
  std::size_t left_;
  std::uint64_t news_ = 0;  // a bit for each peer that must be rung
  bool waiting_ = false;
  WaitLimit::Value limit_;
  Deadline deadline_ = Deadline::never();
  Deadline report_ = Deadline::never();
  const Item* suspect_ = nullptr;  // what a collective has been seen to block
  Deadline certain_ = Deadline::never();
};

// Packs the send or receive that a rank waits in into one word, for others to report.
[[nodiscard]] std::uint64_t pack(const PointToPoint& call);
[[nodiscard]] PointToPoint unpack(std::uint64_t packed);

}  // namespace hccl::node
