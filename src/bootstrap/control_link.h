// SPDX-License-Identifier: Apache-2.0
// After initialisation, ranks that use the network back end exchange faults, departures and stall
// reports over control links.
#pragma once

#include "base/file_descriptor.h"
#include "bootstrap/frame_connection.h"
#include "bootstrap/wait_for_graph.h"

#include <hccl_types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hccl::bootstrap {

// A rank's connection to the root server after the rank has joined, to be passed to a ControlLink.
struct LinkSocket {
  FrameConnection::Detached connection;  // its socket is invalid if this rank keeps no link
  int rank = -1;
  int server_rank = -1;  // the rank in the server's process, or -1 if there is none
  std::string server;    // describes the server's process
  // True if a key or the kernel has confirmed who the server is. If not, its texts are quoted.
  bool server_is_known = false;
};

// A rank's link to the root server after initialisation. The server relays the first fault and
// every departure to all ranks. It reports ranks as lost if their connections end or their hosts no
// longer answer keep-alives.
class ControlLink {
 public:
  // All callbacks run on the control thread.
  struct Callbacks {
    // Called when the server has sent a fault: one that a rank (perhaps this one) has reported, the
    // loss of a rank, calls that do not match, or a deadlock. Also called if a frame of the server
    // was changed in transit, or if a rank runs in the server's process and the connection has
    // ended before that rank has left. May be called more than once.
    std::function<void(hcclResult_t code, const std::string& text)> fault;
    // Called when another rank has left the communicator.
    std::function<void(int rank)> departed = nullptr;
    // Called when a rank has asked why its call does not complete. The owner of the link must then
    // call answer(), on any thread: first for each completed collective that it reports, then for
    // each call in which this rank waits, or with an empty Waiting if there is none.
    std::function<void()> inquiry = nullptr;
    // Called with the answer to ask_who_is_missing(): a clause that names the ranks that cause the
    // stall.
    std::function<void(const std::string& root_cause)> verdict = nullptr;
  };

  ControlLink(LinkSocket socket, Callbacks callbacks);
  // Reports that this rank is leaving, so that the exit of its process causes no fault on other
  // ranks. Blocks until any callback in progress has returned, and then until the report has been
  // sent, but at most a second longer. Does not block on the control thread.
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  // Prevents all later callbacks, even if the link has other owners. Blocks until any callback in
  // progress has returned, unless called from that callback.
  void cancel() noexcept;
  // Reports a fault, which the server relays to all ranks unless it has relayed another fault
  // before. If no memory is left, closes the connection instead, and the server reports this rank
  // as lost. Thread safety: any thread.
  void raise(hcclResult_t code, const std::function<std::string()>& make_text) noexcept;
  // Asks the server why this rank's call `waiting` does not complete. The server queries all ranks.
  // Within half a second it sends a verdict or, if the calls of the ranks do not match or have been
  // deadlocked for a second, a fault. If some ranks have not answered by then, a second verdict
  // follows within another half second. Throws std::bad_alloc. Thread safety: any thread.
  void ask_who_is_missing(const Waiting& waiting);
  // Reports one call of this rank to the server, in answer to an inquiry. Throws std::bad_alloc.
  // Thread safety: any thread.
  void answer(const Waiting& waiting);

 private:
  struct State;
  void send(FrameType type, Bytes payload);

  std::shared_ptr<State> state_;
};

}  // namespace hccl::bootstrap
