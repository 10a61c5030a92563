// SPDX-License-Identifier: Apache-2.0
// The sends and receives of one group while a rank is in it. Private to the engine's files.
#pragma once

#include "base/deadline.h"
#include "node/engine.h"

#include <span>
#include <string>
#include <vector>

namespace hccl::node {

class Engine::Exchange {
 public:
  Exchange(Engine& engine, const StreamPlace& place, std::span<const PointToPoint> calls,
           GroupsAhead& ahead);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // To its end; throws the communicator's fault.
  void run();

 private:
  enum class Stage { begun, offered, done };
  struct Item {
    const PointToPoint* call;
    Mailbox* mailbox;
    Message* message;
    Stage stage;
  };

  [[nodiscard]] Item item_of(const PointToPoint& call) const;
  [[nodiscard]] static bool ready(const Item& item);
  void advance(Item& item);
  void offer(const Item& item);
  void take(const Item& item);
  void copy(const PointToPoint& call, const Message& message);
  void copy_from_peer(const PointToPoint& call, const Message& message, std::uint64_t to);

  void look_ahead();
  [[nodiscard]] bool advance_ahead();

  void sleep();
  void check_patience();
  void note_waiting();
  void check_presence(const Item& item) const;
  [[nodiscard]] const Item* blocked_by_collective() const;
  [[nodiscard]] std::string delay_text() const;
  [[nodiscard]] RankRecord& record(int rank) const {
    return engine_.control_.header().records[rank];
  }

  Engine& engine_;
  const StreamPlace place_;
  GroupsAhead& ahead_;
  std::vector<Item> items_;
  bool looked_ahead_ = false;
  std::vector<Item> items_ahead_;  // of the groups behind, as far as they can be begun
  std::size_t left_;
  bool waiting_ = false;
  Deadline deadline_ = Deadline::never();
  Deadline report_ = Deadline::never();
  const Item* suspect_ = nullptr;  // what a collective has been seen to block
  Deadline certain_ = Deadline::never();
};

// What a rank tells of the send or receive it waits in, in one word.
[[nodiscard]] std::uint64_t pack(const PointToPoint& call);
[[nodiscard]] PointToPoint unpack(std::uint64_t packed);

}  // namespace hccl::node
