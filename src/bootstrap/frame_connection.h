// SPDX-License-Identifier: Apache-2.0
// Exchanges frames over a connected socket, driven by an event loop. Used by root servers, joining
// ranks, node exchanges and control links. TCP connections are encrypted by TLS; unix sockets are
// not, because the kernel says which user owns the other end.
#pragma once

#include "base/address.h"
#include "base/file_descriptor.h"
#include "bootstrap/event_loop.h"
#include "bootstrap/wire.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hccl::crypto {
class TlsSession;
}

namespace hccl::bootstrap {

// Thread safety: only the thread that runs the loop. No member blocks unless its comment says so.
// Errors of the peer are not thrown, but reported by ended() and why().
class FrameConnection : public std::enable_shared_from_this<FrameConnection> {
 public:
  class Owner {
   public:
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    virtual ~Owner() = default;
    // Called when data has arrived or the connection has ended. Must call connection.receive()
    // until it returns nothing.
    virtual void on_activity(FrameConnection& connection) = 0;
  };

  struct Limits {
    std::size_t payload = kSmallPayload;         // bytes per received frame
    std::size_t descriptors = 0;                 // received, but not yet returned with a frame
    std::size_t unsent = std::size_t{64} << 20;  // bytes queued to send
  };
  // The reason to end a connection whose first bytes are not TLS.
  static constexpr const char* kNotTls =
      "sent bytes that are not a TLS 1.3 handshake; if it is a rank, install the same version of "
      "hccl on its host";

  struct Ends {
    Address own;
    Address peer;
  };
  // A connection that is not attached to a loop.
  struct Detached {
    FileDescriptor socket;
    Ends ends{};
    std::shared_ptr<crypto::TlsSession> tls{};  // null for a unix socket, which is not encrypted
    Bytes encrypted{};  // bytes that have arrived, and that `tls` has not taken yet
    Bytes received{};   // frames that have arrived, after decryption
  };

  FrameConnection(EventLoop& loop, Detached connection, const Limits& limits);
  ~FrameConnection();
  FrameConnection(const FrameConnection&) = delete;
  FrameConnection& operator=(const FrameConnection&) = delete;

  // Sets the object that is notified of activity. If there is none, call receive() and ended()
  // after each EventLoop::run_one().
  void set_owner(Owner* owner) { owner_ = owner; }
  // Returns the next frame if it has arrived completely. Otherwise returns nothing, and continues
  // to read on the loop.
  [[nodiscard]] std::optional<Frame> receive();
  // Returns whether any byte has arrived.
  [[nodiscard]] bool has_heard() const { return has_heard_; }
  // Returns whether both ends have proved that they know the key, or the connection is not
  // encrypted.
  [[nodiscard]] bool is_established() const;

  // Queues the frame and sends as many bytes as the socket accepts. Before is_established(), keeps
  // the frame until then. Only unencrypted connections can send descriptors, which must stay open
  // until has_unsent() returns false.
  void send(FrameType type, std::span<const std::byte> payload,
            const std::vector<int>& descriptors = {});
  // Retries a send that failed because the kernel was short of memory or had too many descriptors
  // in flight. Blocks for up to 63 ms: call it only if the process might exit before the event loop
  // could retry.
  void insist();
  [[nodiscard]] bool has_unsent() const { return !unsent_.empty(); }

  // Returns true if the connection has ended: it has failed, the peer has closed it or violated
  // the protocol, or bytes were changed in transit (see forged()). receive() may still return
  // frames that arrived before the end.
  [[nodiscard]] bool ended() const { return ended_; }
  // Returns the reason for the end, as a predicate with the peer as its subject.
  [[nodiscard]] const std::string& why() const { return why_; }
  // Returns whether the peer violated the protocol, does not know the key, or forged() is true.
  [[nodiscard]] bool broke_rules() const { return broke_rules_; }
  // Returns whether the peer does not know the key.
  [[nodiscard]] bool lacks_key() const;
  // Returns whether bytes were changed, repeated, reordered or dropped on the path.
  [[nodiscard]] bool forged() const;

  // Enables keep-alives, which detect within ten seconds that the peer's host can no longer be
  // reached. A host answers keep-alives even if the peer's process is stopped.
  void keep_alive();
  // Removes the owner, sends queued frames for at most a second, then closes the connection and
  // calls done(). Does not block.
  void finish(std::function<void()> done = nullptr);
  // Removes the owner, discards unsent frames and closes the connection.
  void close();
  // Detaches the connection from its loop. Call it only if has_unsent() is false. The object is
  // unusable afterwards.
  [[nodiscard]] Detached detach();

  // Valid until the connection is closed.
  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] const Ends& ends() const { return ends_; }
  // Returns whether this is a unix socket: the kernel knows who is at the other end, so the
  // connection is not encrypted, and ends() is empty.
  [[nodiscard]] bool is_local() const { return !tls_; }
  // Returns the peer's address or, for a unix socket, its pid and user.
  [[nodiscard]] std::string peer_text() const;
  // Returns both ends' addresses, or "unix socket".
  [[nodiscard]] std::string ends_text() const;

 private:
  struct Unsent {
    Bytes bytes;
    std::size_t sent = 0;
    std::vector<int> descriptors;
  };

  [[nodiscard]] std::optional<Frame> take_frame();
  void on_readable();
  void read_some();
  [[nodiscard]] std::ptrdiff_t read_socket(Bytes& destination);
  void decrypt(std::span<const std::byte> encrypted);
  void queue(Bytes bytes, const std::vector<int>& descriptors);
  void write_some();
  [[nodiscard]] long send_front();
  void break_rules(const std::string& why);
  void end(const std::string& why);

  EventLoop& loop_;
  FileDescriptor socket_;
  Limits limits_;
  Ends ends_;
  DescriptorWait wait_;
  std::optional<LoopTimer> retry_;  // repeats a write that a shortage in the kernel prevented
  std::optional<LoopTimer> patience_;
  Owner* owner_ = nullptr;
  std::shared_ptr<crypto::TlsSession> tls_;
  Bytes received_;
  std::deque<FileDescriptor> received_descriptors_;
  std::deque<Unsent> unsent_;
  std::size_t unsent_bytes_ = 0;
  std::string why_;
  std::function<void()> done_;
  std::shared_ptr<FrameConnection> self_;  // keeps the object alive while it finishes
  bool reading_ = false;
  bool writing_ = false;
  bool stalled_ = false;
  bool has_heard_ = false;
  bool ended_ = false;
  bool broke_rules_ = false;
};

}  // namespace hccl::bootstrap
