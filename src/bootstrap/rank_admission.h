// SPDX-License-Identifier: Apache-2.0
// Admits connections to the root server: authenticates the peer, with a TLS handshake or by what
// the kernel reports about it, and passes the connection to the owner after a valid hello.
#pragma once

#include "base/deadline.h"
#include "bootstrap/frame_connection.h"
#include "bootstrap/messages.h"
#include "bootstrap/pending_connections.h"
#include "bootstrap/shared_secret.h"
#include "bootstrap/unique_id.h"

#include <optional>
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

  // `listener`: a TCP socket. `local_listener`: see listen_for_local_ranks(); may be invalid.
  // `hello_limit`: the time within which a connection must send a valid hello. Throws
  // Error(hcclSystemError) if a listener cannot be watched.
  RankAdmission(EventLoop& loop, const UniqueId& id, JoinKey key, FileDescriptor listener,
                FileDescriptor local_listener, std::chrono::milliseconds hello_limit, Owner& owner);

  void start();
  void close_listeners();
  void close_all();

  [[nodiscard]] static std::shared_ptr<FrameConnection> take(Pending& pending) {
    return pending.list.take(pending);
  }
  // Sends the rank the reason why it may not join, and closes the connection. `is_logged`: whether
  // to log this as a rejection.
  static void refuse(Pending& pending, const Failure& failure, bool is_logged);
  // Returns whether the identity of the other end is unverified: the key is public, and the other
  // end is on another machine, whose users this kernel does not know.
  [[nodiscard]] bool is_taken_at_its_word(const FrameConnection& connection) const;

 private:
  void on_accepted(FileDescriptor socket, const SocketAddress& from) override;
  void on_pending_frame(Pending& pending, Frame& frame) override;
  bool on_no_room(int error) override;

  void complain_about_no_room();
  void add_local(FileDescriptor socket);
  void cut_off(const FileDescriptor& socket, const Address& peer, const char* why);
  static void turn_away(Pending& pending, Refusal::Reason reason, const std::string& why);
  [[nodiscard]] std::string wrong_user(const FrameConnection& connection) const;

  const UniqueId& id_;
  JoinKey key_;
  Owner& owner_;
  PendingConnections remote_;
  std::optional<PendingConnections> local_;  // a list of its own, which no flood over TCP displaces
  std::optional<Deadline> next_complaint_;
};

}  // namespace hccl::bootstrap
