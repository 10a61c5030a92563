// SPDX-License-Identifier: Apache-2.0
// The link over which the ranks of several nodes learn of each other after initialisation.
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

// The connection to the root server that a rank keeps after it has joined; for a ControlLink.
struct LinkSocket {
  FrameConnection::Detached connection;  // without a socket if all ranks are on one node
  int rank = -1;                         // this rank
  int server_rank = -1;                  // the rank of the server's process; -1: it has none
  std::string server;                    // describes that process
  bool server_is_known = false;  // by a key or by the kernel; otherwise its texts are quoted
};

// A rank's link to the root server after initialisation. Through it the ranks of several nodes
// learn of faults, departures, and the loss of a rank or a node, whose connection ends or leaves
// its keep-alives unanswered.
class ControlLink {
 public:
  // All of them run on the control thread.
  struct Callbacks {
    // The communicator has failed elsewhere. Called at most once.
    std::function<void(hcclResult_t code, const std::string& text)> fault;
    // A rank has left the communicator.
    std::function<void(int rank)> departed = nullptr;
    // A rank has waited for long: call answer() for each call of this rank.
    std::function<void()> inquiry = nullptr;
    // Answers this rank's inquiry: a clause that names the ranks at the root of the stall.
    std::function<void(const std::string& root_cause)> verdict = nullptr;
  };

  ControlLink(LinkSocket socket, Callbacks callbacks);
  // Reports that this rank leaves, and waits for a callback in progress. The process may end
  // afterwards: no other rank takes that for a fault.
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  // After return no callback is running and none will start, even if others still hold the link.
  // Exception: called from a callback, it does not wait for that one.
  void cancel() noexcept;
  // Reports a fault to the other nodes; from any thread. If there is no memory for that, closes the
  // connection, which they take for the end of this rank.
  void raise(hcclResult_t code, const std::function<std::string()>& make_text) noexcept;
  // Asks all ranks what they wait for, since this one has waited for long. The verdict follows
  // within half a second if the server can be reached. From any thread. Throws std::bad_alloc.
  void ask_who_is_missing(const Waiting& waiting);
  // Answers an inquiry. From any thread. Throws std::bad_alloc.
  void answer(const Waiting& waiting);

 private:
  struct State;
  void send(FrameType type, std::vector<std::byte> payload);

  std::shared_ptr<State> state_;
};

}  // namespace hccl::bootstrap
