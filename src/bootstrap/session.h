// SPDX-License-Identifier: Apache-2.0
// One connection accepted by an id server: reads and writes frames on the control thread.
#pragma once

#include "base/address.h"
#include "bootstrap/frame_seal.h"
#include "bootstrap/messages.h"
#include "bootstrap/socket_owner.h"
#include "bootstrap/wire.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace hccl::bootstrap {

// All members on the control thread. Alive while an operation of its socket is in progress.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // Told about at most one closing, and about nothing after it.
  class Owner {
   public:
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    virtual void on_frame(Session& session, const Frame& frame) = 0;
    // The other side closed, broke the rules or let the deadline pass; `why` says which.
    virtual void on_closed(Session& session, const std::string& why) = 0;
    // A frame's code is wrong. The session is of no use any more: the owner closes or finishes it.
    virtual void on_forged(Session& session) = 0;

    virtual ~Owner() = default;
  };

  Session(FileDescriptor socket, const Address& peer, Owner& owner);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // `heard` is what has been read from the socket already.
  void start(Bytes heard);
  // Closes the session unless lift_deadline() comes first.
  void set_deadline(std::chrono::milliseconds limit);
  void lift_deadline();
  // From now on both ends give each frame a code.
  void authenticate(const FrameSeal& seal) { seal_ = seal; }
  void send(FrameType type, std::span<const std::byte> payload);
  // The same, for a caller that sends one payload to many; `digest` is its SHA-256.
  void send(FrameType type, std::span<const std::byte> payload, const Digest& digest);
  // Sends a frame that has no code, whatever has been agreed.
  void send_openly(FrameType type, std::span<const std::byte> payload);
  // A peer that cannot be reached any more is noticed within ten seconds; one that is stopped is
  // not taken for it.
  void keep_alive();
  // Forgets the owner: what was sent still goes out, within a second, then the socket closes.
  void finish();
  // Forgets the owner and closes.
  void close();
  // Returns the owner of the other end, if it is on this machine.
  [[nodiscard]] SocketOwner peer_owner() const;
  // Returns whether the other side is on this machine, by whichever of its addresses it comes.
  [[nodiscard]] bool is_local() const;
  [[nodiscard]] const Address& peer() const { return peer_; }
  // Both ends, for texts: see connection_text(). Also after the connection has closed.
  [[nodiscard]] std::string ends() const;
  [[nodiscard]] Address own_address() const;

  int rank = -1;               // once it has joined
  Opening opening;             // the rank's, once the session is greeted
  bool left_silently = false;  // has closed without a word
  bool departed = false;       // has said that it leaves
  bool greeted = false;
  bool is_own_process = false;  // the other side is this process, once it has joined

 private:
  struct Io;

  template <class Handler>
  void serve(Handler handler);
  void read_some();
  void take_bytes(std::size_t before, const std::error_code& error, std::size_t count);
  void note_written(const std::error_code& error, std::size_t count);
  void take_frames();
  void write_now();
  void write_rest();
  void write_later();
  void drop_sent();
  void fail(const std::string& why);
  void queue(Bytes frame);

  std::unique_ptr<Io> io_;
  Address local_;
  Address peer_;
  Owner* owner_;
  std::optional<FrameSeal> seal_;
};

}  // namespace hccl::bootstrap
