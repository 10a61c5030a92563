// SPDX-License-Identifier: Apache-2.0
// Finds a rank that has begun to send this rank a message for which no receive is queued. The
// header of such a message stays in the endpoint until a receive takes it. The probe borrows the
// endpoints of all ranks from which no receive is queued, and looks for a header in each of them.
// The probe gives an endpoint back soon after a receive from that rank has been queued.
#pragma once

#include "base/deadline.h"
#include "call/backend.h"
#include "network/directed_link.h"
#include "transport/wait_set.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace hccl::network {

class NetworkBackend;
class NetworkMessages;

// Thread safety: any thread.
class MessageProbe {
 public:
  MessageProbe(NetworkBackend& network, NetworkMessages& messages)
      : network_(network), messages_(messages) {}

  // Returns a message that another rank has begun to send and for which no receive is queued. If
  // there are several, returns the one from the first rank at or after `first`, in cyclic order.
  // Blocks until there is one; returns nothing if the deadline passes first. If `only_looks`, does
  // not block, and returns nothing if there is no message or another call is running. Throws the
  // recorded fault if the communicator has failed. Concurrent calls run one after the other.
  [[nodiscard]] std::optional<Offer> find(int first, bool only_looks, Deadline deadline);
  // Takes a link back from the probe, because a receive is about to use the link. Blocks until the
  // probe has returned the endpoint. Call after the receive has been numbered.
  void take_back(const DirectedLink& link);
  // Call when a receive has ended and has passed the turn to the next message.
  void note_received() {
    if (sleeps_.load(std::memory_order_seq_cst)) wake();
  }
  // Wakes a sleeping probe.
  void wake();

 private:
  struct Borrowed {
    int peer;
    DirectedLink* link;
  };

  // Calls visit(peer, link) for each link that is not borrowed and for which no receive is queued.
  template <class Visit>
  void for_each_free(Visit visit) const;
  void borrow();
  void give_back() noexcept;
  [[nodiscard]] std::optional<Offer> look(int first);
  [[nodiscard]] std::optional<Offer> look_at(int peer, DirectedLink& link);
  void sleep(Deadline deadline);

  NetworkBackend& network_;
  NetworkMessages& messages_;
  std::atomic<bool> sleeps_{false};  // if true, a receive must call wake() when it ends
  std::timed_mutex mutex_;           // held by find(); guards the next two members
  std::vector<Borrowed> borrowed_;
  std::set<int> lost_;
  std::mutex wait_mutex_;
  std::optional<transport::WaitSet> wait_set_;  // created by the first probe
};

}  // namespace hccl::network
