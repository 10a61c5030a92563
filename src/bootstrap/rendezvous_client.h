// SPDX-License-Identifier: Apache-2.0
// A rank's side of the rendezvous: finds the server, joins, and hears through it of everybody's
// fate.
#pragma once

#include "base/deadline.h"
#include "bootstrap/control_link.h"
#include "bootstrap/frame_channel.h"
#include "bootstrap/messages.h"
#include "bootstrap/missing_reports.h"
#include "bootstrap/socket_owner.h"
#include "bootstrap/unique_id.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

namespace hccl::bootstrap {

// One thread. Every member that waits throws Error: the deadline, a failure the server reports, or
// the death of the server's process.
class RendezvousClient {
 public:
  RendezvousClient(UniqueId id, Bytes key, Hello hello, Deadline deadline);

  // Connects, again and again until the deadline, and joins. `before_attempt` runs before each try
  // and returns what is to be said besides if none succeeds.
  void join(const std::function<std::string()>& before_attempt);
  // Joins over a connection that is there already; false if it ends before the server has answered.
  // The server never sees the same nonce twice, but in tests.
  [[nodiscard]] bool join_over(FileDescriptor socket, const Secret& nonce = random_secret());
  // Waits until all ranks have joined.
  [[nodiscard]] Table wait_for_table();
  // Tells the server that this rank has all it needs, and waits until everybody has. Returns what
  // each rank has announced, by rank.
  [[nodiscard]] std::vector<Bytes> finish(const Bytes& announced);
  // After that: the connection, for a ControlLink.
  [[nodiscard]] LinkSocket release();
  // Ends this rank's part because of an error of its own, so that the others hear why.
  void leave(const Failure& own);

  // For a caller that waits for other descriptors too: blocks until one of `others` has an event,
  // throwing as all waits here do. At most `limit`.
  void wait(std::vector<pollfd>& others, Deadline::Duration limit = std::chrono::hours(24));
  // Called when something shows that a rank is gone: waits shortly for the server to say which, and
  // throws that, else Error(code, text).
  [[noreturn]] void wait_for_verdict(const Failure& otherwise);
  [[nodiscard]] Deadline deadline() const { return deadline_; }

 private:
  enum class Outcome { joined, refused, unreachable, dropped };

  [[nodiscard]] Outcome try_address(const Address& address);
  [[nodiscard]] FileDescriptor connect_to(const Address& address, Outcome& outcome);
  [[nodiscard]] std::optional<Frame> await_frame(FrameChannel& channel);
  void answer_greeting(const Frame& frame, const Bytes& opening, FrameChannel& channel);
  [[nodiscard]] SocketOwner::Knowledge server_user(int socket) const;
  [[noreturn]] void refuse_server(const FrameChannel& channel) const;
  [[noreturn]] void report_refusal(const Frame& frame) const;
  [[noreturn]] void report_failure(const Failure& failure) const;
  void read_welcome(const Frame& frame);
  void note_refusal();
  // Says, when a report is due, that no server has been found.
  void report_no_server();
  // Logs the server's report of who is missing.
  void note_missing(const Frame& frame);
  // Takes what has arrived: keeps a frame that is news to the caller, throws a failure.
  [[nodiscard]] std::optional<Frame> next_frame();
  void check_server();
  void await_last_words();
  void flush_last_words() noexcept;
  void note_kept(const std::vector<pollfd>& others) const;
  [[nodiscard]] Frame wait_for(FrameType type);
  [[noreturn]] void refuse_protocol() const;
  [[noreturn]] void give_up();
  [[noreturn]] void give_up_before_joining();
  [[nodiscard]] double elapsed_seconds() const;
  [[nodiscard]] std::string where() const;
  [[nodiscard]] std::string server_text() const;

  UniqueId id_;
  Bytes key_;
  Hello hello_;
  Deadline deadline_;
  Deadline::Clock::time_point begin_ = Deadline::Clock::now();
  MissingReports reports_;
  int server_reports_ = 0;
  std::optional<Deadline> refusals_end_;
  std::optional<FrameChannel> channel_;
  std::optional<Frame> kept_;
  std::string last_trouble_ = "no answer";
  std::string own_trouble_;
  Address server_address_;
  ProcessIdentity server_;
  int server_rank_ = -1;
  bool server_is_known_ = false;  // by a key or by the kernel
  FileDescriptor server_process_;
};

}  // namespace hccl::bootstrap
