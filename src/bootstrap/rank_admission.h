// SPDX-License-Identifier: Apache-2.0
// Admits connections to the root server: checks the first bytes of each connection, authenticates
// the peer, and passes the connection to the owner after a valid hello.
#pragma once

#include "bootstrap/frame_connection.h"
#include "bootstrap/messages.h"
#include "bootstrap/pending_connections.h"
#include "bootstrap/shared_secret.h"
#include "bootstrap/unique_id.h"

#include <string>

namespace hccl::bootstrap {

// Thread safety: control thread only.
class RankAdmission final : private PendingConnections::Owner {
 public:
  using Pending = PendingConnections::Pending;

  class Owner {
   public:
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    virtual ~Owner() = default;
    // Called when a rank that knows the key asks to join. Must take() or refuse() its connection.
    virtual void on_hello(Pending& pending, const Hello& hello) = 0;
  };

  // `hello_limit`: the time within which a connection must send a valid hello. Throws
  // Error(hcclSystemError) if the listener cannot be watched.
  RankAdmission(EventLoop& loop, const UniqueId& id, JoinKey key, FileDescriptor listener,
                std::chrono::milliseconds hello_limit, Owner& owner);

  void start() { pending_.start(); }
  void close_listener() { pending_.close_listener(); }
  void close_all() { pending_.close_all(); }

  [[nodiscard]] std::shared_ptr<FrameConnection> take(Pending& pending) {
    return pending_.take(pending);
  }
  // Sends the rank the reason why it may not join, and closes the connection. `is_logged`: whether
  // to log this as a rejection.
  void refuse(Pending& pending, const Failure& failure, bool is_logged);
  // Returns whether the identity of the other end is unverified: the key is public, and the other
  // end is on another machine, whose users this kernel does not know.
  [[nodiscard]] bool is_taken_at_its_word(const FrameConnection& connection) const;

 private:
  void on_accepted(FileDescriptor socket, const SocketAddress& from) override;
  void on_pending_frame(Pending& pending, Frame& frame) override;
  void on_no_room(int) override { pending_.pause_accepting(); }
  [[nodiscard]] std::string describe(const FrameConnection& connection) const override;

  void cut_off(const FileDescriptor& socket, const Address& peer, const char* why);
  void turn_away(Pending& pending, Refusal::Reason reason, const std::string& why);
  [[nodiscard]] std::string wrong_user(const FrameConnection& connection) const;

  const UniqueId& id_;
  const JoinKey key_;
  Owner& owner_;
  PendingConnections pending_;
};

}  // namespace hccl::bootstrap
