// SPDX-License-Identifier: Apache-2.0
// Finds a rank that has begun to send this rank a message for which no receive has been posted. A
// message begins with a header, which stays in its endpoint until the receive takes it. So a probe
// borrows the endpoints of the ranks from which no receive is in flight, and returns an endpoint as
// soon as a receive from that rank has been queued.
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

  // Returns a message that another rank has begun to send and for which no receive is queued.
  // Blocks until there is one. Returns nothing if the deadline passes first, or if `only_looks` is
  // set and there is none now. Checks the ranks in order, starting at `first` and wrapping around.
  // Throws the communicator's fault. Concurrent calls run one after another.
  [[nodiscard]] std::optional<Offer> find(int first, bool only_looks, Deadline deadline);
  // Takes a link's endpoint back for a receive that is about to use it. Blocks until the probe has
  // returned it. Call after the receive has been numbered.
  void take_back(const DirectedLink& link);
  // Call when a receive has passed its turn on to the next message.
  void note_received() {
    if (sleeps_.load(std::memory_order_seq_cst)) wake();
  }
  // Ends the wait of a probe.
  void wake();

 private:
  struct Borrowed {
    int peer;
    DirectedLink* link;
  };

  // Calls visit(peer, link) for the links that are not borrowed and that no receive is using or is
  // about to use.
  template <class Visit>
  void for_each_free(Visit visit) const;
  void borrow();
  void give_back() noexcept;
  [[nodiscard]] std::optional<Offer> look(int first);
  [[nodiscard]] std::optional<Offer> look_at(int peer, DirectedLink& link);
  void sleep(Deadline deadline);

  NetworkBackend& network_;
  NetworkMessages& messages_;
  std::atomic<bool> sleeps_{false};  // while true, a receive must ring when it ends
  std::timed_mutex mutex_;           // held by find(); guards the next two members
  std::vector<Borrowed> borrowed_;
  std::set<int> lost_;
  std::mutex wait_mutex_;
  std::optional<transport::WaitSet> wait_set_;  // created by the first probe
};

}  // namespace hccl::network
