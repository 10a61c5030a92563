// SPDX-License-Identifier: Apache-2.0
// A rank's side of the rendezvous: finds the root server, joins, and learns through it what becomes
// of the other ranks.
#pragma once

#include "base/deadline.h"
#include "base/secret.h"
#include "bootstrap/control_link.h"
#include "bootstrap/event_loop.h"
#include "bootstrap/frame_connection.h"
#include "bootstrap/messages.h"
#include "bootstrap/missing_reports.h"
#include "bootstrap/socket_owner.h"
#include "bootstrap/unique_id.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hccl::bootstrap {

// Runs an event loop of its own in the thread that calls it: handing the connection over from the
// control thread would cost two context switches for each message. Every member that waits throws
// Error for the deadline, a failure that the server reports, or the death of the server's process.
class RendezvousClient {
 public:
  // Throws Error(hcclSystemError).
  RendezvousClient(UniqueId id, Bytes key, Hello hello, Deadline deadline);

  // Connects, again and again until the deadline, and joins. `before_attempt` runs before each try;
  // the text it returns is added to the error if none succeeds.
  void join(const std::function<std::string()>& before_attempt);
  // Joins over a connection that exists. Returns false if it ends before the server has answered.
  // Only tests pass a nonce: the server must never see the same one twice.
  [[nodiscard]] bool join_over(FileDescriptor socket, const Secret& nonce = random_secret());
  // Waits until all ranks have joined.
  [[nodiscard]] Table wait_for_table();
  // Reports that this rank has all it needs, and waits until every rank has. Returns what each rank
  // has announced, by rank.
  [[nodiscard]] std::vector<Bytes> finish(const Bytes& announced);
  // After finish(): returns the connection, for a ControlLink.
  [[nodiscard]] LinkSocket release();
  // Ends this rank's part because of an error of its own, and tells the other ranks why.
  void leave(const Failure& own);

  // For a caller that waits for something else on the loop: blocks until something has happened, at
  // most `limit`.
  void wait(Deadline::Duration limit = std::chrono::hours(24));
  // For a caller that has noticed the loss of a rank: waits for the server to report which, at most
  // a second, and throws that, else Error(code, text).
  [[noreturn]] void wait_for_verdict(const Failure& otherwise);
  [[nodiscard]] EventLoop& loop() { return loop_; }

 private:
  enum class Outcome { joined, refused, unreachable, dropped };

  [[nodiscard]] Outcome try_address(const Address& address);
  [[nodiscard]] FileDescriptor connect_to(const Address& address, Outcome& outcome);
  [[nodiscard]] int await_connection(const FileDescriptor& socket);
  [[nodiscard]] std::optional<Frame> await_frame(FrameConnection& connection);
  void answer_greeting(const Frame& frame, const Bytes& opening, FrameConnection& connection);
  [[nodiscard]] SocketOwner::Knowledge server_user(int socket) const;
  [[noreturn]] void refuse_server(const FrameConnection& connection) const;
  [[noreturn]] void report_refusal(const Frame& frame) const;
  [[noreturn]] void report_failure(const Failure& failure) const;
  void read_welcome(const Frame& frame);
  void note_refusal();
  // Logs, when a report is due, that no server has been found.
  void report_no_server();
  // Logs the server's report of who is missing.
  void note_missing(const Frame& frame);
  // Returns the next frame that concerns the caller. Throws a failure.
  [[nodiscard]] std::optional<Frame> next_frame();
  void check_server();
  void await_last_words();
  void flush_last_words();
  void run_once(Deadline::Duration limit);
  [[nodiscard]] Frame wait_for(FrameType type);
  [[noreturn]] void refuse_protocol() const;
  [[noreturn]] void give_up();
  [[noreturn]] void give_up_before_joining();
  [[nodiscard]] Deadline within(Deadline::Duration limit) const;
  [[nodiscard]] double elapsed_seconds() const;
  [[nodiscard]] std::string where() const;
  [[nodiscard]] std::string server_text() const;

  EventLoop loop_;
  UniqueId id_;
  Bytes key_;
  Hello hello_;
  Deadline deadline_;
  Deadline::Clock::time_point begin_ = Deadline::Clock::now();
  MissingReports reports_;
  int server_reports_ = 0;
  std::optional<Deadline> refusals_end_;
  std::shared_ptr<FrameConnection> connection_;
  std::optional<Frame> kept_;
  std::string last_trouble_ = "no answer";
  std::string own_trouble_;
  Address server_address_;
  ProcessIdentity server_;
  int server_rank_ = -1;
  bool server_is_known_ = false;  // by a key or by the kernel
  FileDescriptor server_process_;
  std::optional<DescriptorWait> server_exit_;
  bool server_has_exited_ = false;
};

}  // namespace hccl::bootstrap
