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

// The connection to the root server that a rank keeps after it has joined; for a ControlLink.
struct LinkSocket {
  FrameConnection::Detached connection;  // without a socket if all ranks are on one node
  int rank = -1;                         // this rank
  int server_rank = -1;                  // the rank of the server's process; -1: it has none
  std::string server;                    // describes that process
  bool server_is_known = false;  // by a key or by the kernel; otherwise its texts are quoted
};

// A rank's link to the root server after initialisation. Over it the ranks of several nodes are
// notified of faults, of departures, and of lost ranks and nodes, whose connections end or stop
// answering keep-alives.
class ControlLink {
 public:
  // All callbacks run on the control thread.
  struct Callbacks {
    // The communicator has failed elsewhere. Called at most once.
    std::function<void(hcclResult_t code, const std::string& text)> fault;
    // A rank has left the communicator.
    std::function<void(int rank)> departed = nullptr;
    // A rank has waited for long: call answer() for each call of this rank.
    std::function<void()> inquiry = nullptr;
    // Delivers the answer to ask_who_is_missing(): a clause that names the ranks at the root of the
    // stall.
    std::function<void(const std::string& root_cause)> verdict = nullptr;
  };

  ControlLink(LinkSocket socket, Callbacks callbacks);
  // Reports that this rank leaves, and blocks until the report has been sent and a callback in
  // progress has ended. The process may exit afterwards without a fault on other ranks.
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  // Ends the callbacks: after return none is running and none will start, even if others still hold
  // the link. If called from a callback, does not wait for that one.
  void cancel() noexcept;
  // Reports a fault to the other nodes. If there is no memory for that, closes the connection,
  // which they treat as the end of this rank. Thread safety: any thread.
  void raise(hcclResult_t code, const std::function<std::string()>& make_text) noexcept;
  // Asks all ranks what they wait for, because this one has waited for long. The verdict follows
  // within half a second if the server can be reached. Throws std::bad_alloc. Thread safety: any
  // thread.
  void ask_who_is_missing(const Waiting& waiting);
  // Answers an inquiry. Throws std::bad_alloc. Thread safety: any thread.
  void answer(const Waiting& waiting);

 private:
  struct State;
  void send(FrameType type, std::vector<std::byte> payload);

  std::shared_ptr<State> state_;
};

}  // namespace hccl::bootstrap
