// SPDX-License-Identifier: Apache-2.0
// A rank's side of the rendezvous: connects to the root server, joins, and receives the data of the
// other ranks.
#pragma once

#include "base/deadline.h"
#include "bootstrap/control_link.h"
#include "bootstrap/event_loop.h"
#include "bootstrap/frame_connection.h"
#include "bootstrap/messages.h"
#include "bootstrap/server_identity.h"
#include "bootstrap/server_search.h"
#include "bootstrap/shared_secret.h"
#include "bootstrap/unique_id.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hccl::bootstrap {

// Runs its own event loop in the calling thread, because receiving messages through the control
// thread would cost two context switches per message. After join(), every member that waits for the
// server throws Error if the deadline passes, the server reports a failure or violates the
// protocol, or the server's process exits.
class RendezvousClient {
 public:
  // Throws Error(hcclSystemError).
  RendezvousClient(UniqueId id, JoinKey key, Hello hello, Deadline deadline);

  // Connects to the server and joins: see ServerSearch::run(), which calls before_attempt(). Blocks
  // until the server has answered. Throws Error if the deadline passes, or the server refuses this
  // rank.
  void join(const std::function<std::string()>& before_attempt);
  // Joins over an existing TCP connection. Blocks until the server has answered. Throws Error if
  // the deadline passes, the server refuses this rank, or the peer is not a server that this rank
  // trusts. Returns false if the connection ends first, or if the ranks share no secret and the
  // kernel could not report the server's user in time.
  [[nodiscard]] bool join_over(FileDescriptor socket);
  // Blocks until all ranks have joined.
  [[nodiscard]] Table wait_for_table();
  // Sends `announced`, which tells the server that this rank has received everything it needs.
  // Blocks until every rank has done so. Returns what each rank has announced, in rank order.
  [[nodiscard]] std::vector<Bytes> finish(const Bytes& announced);
  // Returns the connection, for a ControlLink. Call it after finish().
  [[nodiscard]] LinkSocket release();
  // Leaves the rendezvous because of this rank's own error, and reports the reason to the server,
  // which tells the other ranks. Blocks for at most 100 ms.
  void leave(const Failure& own);

  // Blocks until the loop has handled an event, but for at most `limit`. Used by callers that wait
  // on the loop for events of their own.
  void wait(Deadline::Duration limit = std::chrono::hours(24));
  // Waits at most a second for the server to report a failure of the rendezvous. Throws the
  // reported failure, or `otherwise` if no report comes. For callers that have noticed that a rank
  // is lost or that the deadline has passed.
  [[noreturn]] void wait_for_verdict(const Failure& otherwise);
  [[nodiscard]] EventLoop& loop() { return loop_; }

 private:
  // Joins over the socket of connect_to_local_server(). Returns and throws as join_over() does.
  [[nodiscard]] bool join_locally(FileDescriptor socket);
  // Sends the hello. Returns the server's answer, or nothing if the connection ends first.
  [[nodiscard]] std::optional<Frame> ask_to_join(FrameConnection& connection);
  // Waits until is_done() returns true. Returns false if the connection ends first.
  [[nodiscard]] bool await(FrameConnection& connection, const std::function<bool()>& is_done);
  void read_welcome(const Frame& frame);
  // Logs the server's report of the missing ranks.
  void note_missing(const Frame& frame);
  // Returns the next frame, or nothing if none has arrived. Handles the types `missing` and
  // `server_rank` itself. Throws the failure if the server reports one.
  [[nodiscard]] std::optional<Frame> next_frame();
  void check_server();
  void await_last_words();
  void flush_last_words();
  void run_once(Deadline::Duration limit);
  [[nodiscard]] Frame wait_for(FrameType type);
  [[noreturn]] void give_up();

  EventLoop loop_;
  UniqueId id_;
  JoinKey key_;
  Hello hello_;
  Deadline deadline_;
  ServerIdentity server_;
  ServerSearch search_;
  int server_reports_ = 0;
  std::shared_ptr<FrameConnection> connection_;
  std::optional<Frame> kept_;
  FileDescriptor server_process_;
  std::optional<DescriptorWait> server_exit_;
  bool server_has_exited_ = false;
};

}  // namespace hccl::bootstrap
