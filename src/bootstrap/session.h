// SPDX-License-Identifier: Apache-2.0
// One connection accepted by an id server: reads and writes frames on the control thread.
#pragma once

#include "base/address.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/socket_owner.h"
#include "bootstrap/wire.h"

#include <chrono>
#include <memory>
#include <string>

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
  void send(FrameType type, std::span<const std::byte> payload);
  // A peer that cannot be reached any more is noticed within ten seconds; one that is stopped is
  // not taken for it.
  void keep_alive();
  // Forgets the owner: what was sent still goes out, within a second, then the socket closes.
  void finish();
  // Forgets the owner and closes.
  void close();
  // Who owns the other end, if it is on this machine.
  [[nodiscard]] SocketOwner peer_owner() const;
  // Whether the other side is on this machine, by whichever of its addresses it comes.
  [[nodiscard]] bool is_local() const;
  [[nodiscard]] const Address& peer() const { return peer_; }

  int rank = -1;               // once it has joined
  Secret nonce{};              // of this session's greeting
  bool left_silently = false;  // has closed without a word
  bool departed = false;       // has said that it leaves
  bool greeted = false;
  bool said_early_hello = false;
  bool is_own_process = false;  // the other side is this process, once it has joined

 private:
  struct Io;

  void read_some();
  void take_frames();
  void write_now();
  void write_rest();
  void drop_sent();
  void fail(const std::string& why);

  std::unique_ptr<Io> io_;
  Address peer_;
  Owner* owner_;
};

}  // namespace hccl::bootstrap
