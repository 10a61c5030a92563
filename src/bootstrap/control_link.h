// SPDX-License-Identifier: Apache-2.0
// The link over which the ranks of several nodes exchange faults, departures and stall reports
// after initialisation.
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

// The connection to the root server that a rank keeps after it has joined, to be passed to a
// ControlLink.
struct LinkSocket {
  FrameConnection::Detached connection;  // without a socket if all ranks are on one node
  int rank = -1;                         // this rank
  int server_rank = -1;                  // the rank in the server's process, or -1 if there is none
  std::string server;                    // describes the server's process
  bool server_is_known =
      false;  // a key or the kernel has confirmed the server; otherwise its texts are quoted
};

// A rank's link to the root server after initialisation. It notifies the ranks of several nodes of
// faults, of departures, and of lost ranks and nodes. A rank or node is lost when its connection
// ends or no longer answers keep-alives.
class ControlLink {
 public:
  // All callbacks run on the control thread.
  struct Callbacks {
    // Called at most once, when the communicator has failed on another rank.
    std::function<void(hcclResult_t code, const std::string& text)> fault;
    // Called when a rank has left the communicator.
    std::function<void(int rank)> departed = nullptr;
    // Called when a rank has asked why its call does not complete. Must call answer() for each call
    // of this rank.
    std::function<void()> inquiry = nullptr;
    // Delivers the answer to ask_who_is_missing(): a clause that names the ranks at the root of the
    // stall.
    std::function<void(const std::string& root_cause)> verdict = nullptr;
  };

  ControlLink(LinkSocket socket, Callbacks callbacks);
  // Reports that this rank leaves. Blocks until the report has been sent, but for at most a second,
  // and until a callback in progress has returned. The process may exit afterwards without causing
  // a fault on other ranks.
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  // Disables the callbacks: after cancel() has returned, none is running and none will start, even
  // if others still hold the link. If called from a callback, does not wait for that callback.
  void cancel() noexcept;
  // Reports a fault to the other nodes. If memory has run out, closes the connection instead, which
  // the other nodes treat as the loss of this rank. Thread safety: any thread.
  void raise(hcclResult_t code, const std::function<std::string()>& make_text) noexcept;
  // Asks all ranks which calls they wait in, because the call `waiting` of this rank does not
  // complete. The verdict follows within half a second if the server can be reached. Throws
  // std::bad_alloc. Thread safety: any thread.
  void ask_who_is_missing(const Waiting& waiting);
  // Answers an inquiry. Throws std::bad_alloc. Thread safety: any thread.
  void answer(const Waiting& waiting);

 private:
  struct State;
  void send(FrameType type, std::vector<std::byte> payload);

  std::shared_ptr<State> state_;
};

}  // namespace hccl::bootstrap
