// SPDX-License-Identifier: Apache-2.0
// The accepted connections that have not authenticated yet, from ranks or from unknown peers that
// have found the listening socket. Limits their number and lifetime, and logs rejections.
#pragma once

#include "base/address.h"
#include "base/deadline.h"
#include "base/file_descriptor.h"
#include "base/rejection_log.h"
#include "bootstrap/event_loop.h"
#include "bootstrap/frame_connection.h"

#include <cstddef>
#include <list>
#include <memory>
#include <string>

namespace hccl::bootstrap {

// Returns a TCP socket that listens on the address; port 0 selects a free port. On failure, returns
// an invalid descriptor and sets errno.
[[nodiscard]] FileDescriptor listen_on(const Address& address) noexcept;

// Thread safety: only the thread that runs the loop.
class PendingConnections final : private FrameConnection::Owner {
 public:
  struct Pending {
    std::shared_ptr<FrameConnection> connection;
    Deadline deadline;
    PendingConnections& list;  // the one that contains this connection
  };

  class Owner {
   public:
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    virtual ~Owner() = default;
    // Called for each accepted connection. Either add() it, or reject it by closing the socket.
    virtual void on_accepted(FileDescriptor socket, const SocketAddress& peer) = 0;
    // Called for each frame of a pending connection. May take() or reject() the connection, or
    // leave it pending.
    virtual void on_pending_frame(Pending& pending, Frame& frame) = 0;
    // Called if accept4() fails with errno `error`. Either makes room (make_room()) and returns
    // true, or pauses (pause_accepting()) and returns false.
    virtual bool on_no_room(int error) = 0;
  };

  struct Limits {
    std::size_t connections = 64;
    Deadline::Duration time = std::chrono::seconds(10);
    FrameConnection::Limits frames;
  };

  // Throws Error(hcclSystemError) if the socket cannot be watched.
  PendingConnections(EventLoop& loop, FileDescriptor listener, const Limits& limits, Owner& owner);
  ~PendingConnections() override;
  PendingConnections(const PendingConnections&) = delete;
  PendingConnections& operator=(const PendingConnections&) = delete;

  // Accepts connections until close_listener().
  void start();
  void close_listener();
  // Stops accepting for 100 ms, during which other parts of the program may release descriptors.
  void pause_accepting();
  // Rejects the connection that is least likely to come from a rank, because descriptors or memory
  // have run out. Returns false if there is no connection.
  [[nodiscard]] bool make_room();

  // Adds a connection. If there are too many, drops another connection.
  void add(FrameConnection::Detached connection);
  // Removes a pending connection and returns it.
  [[nodiscard]] std::shared_ptr<FrameConnection> take(Pending& pending);
  // Removes and closes a pending connection, and logs the rejection. `why`: see
  // RejectionLog::report().
  void reject(Pending& pending, const std::string& why);
  [[nodiscard]] RejectionLog& rejections() { return rejections_; }
  void close_all();
  [[nodiscard]] bool empty() const { return pending_.empty(); }

 private:
  void on_activity(FrameConnection& connection) override;
  void wait_for_connection();
  void accept_some();
  [[nodiscard]] bool drop_one(const std::string& why);
  void watch_deadlines();
  void drop_expired();
  [[nodiscard]] Pending* find(const FrameConnection& connection);

  EventLoop& loop_;
  FileDescriptor listener_;
  DescriptorWait wait_;
  LoopTimer pause_;
  LoopTimer expiry_;
  const Limits limits_;
  Owner& owner_;
  std::list<Pending> pending_;  // in order of arrival
  RejectionLog rejections_{"bootstrap"};
  bool waiting_ = false;
  bool paused_ = false;
  bool expiry_is_set_ = false;
};

}  // namespace hccl::bootstrap
