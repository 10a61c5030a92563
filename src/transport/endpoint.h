// SPDX-License-Identifier: Apache-2.0
// One end of an ordered, flow-controlled stream of bytes between two ranks. Both ends know how many
// bytes to expect and in which order, so a stream has no message boundaries and no headers.
#pragma once

#include "base/deadline.h"
#include "base/error.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

namespace hccl::transport {

// The peer's process, its host or the path to it is gone. The text names the connection and says
// what happened to it. Data that the peer sent earlier may still be received unless the network
// dropped it.
class PeerLost : public Error {
 public:
  PeerLost(int peer, const std::string& message) : Error(hcclSystemError, message), peer_(peer) {}

  [[nodiscard]] int peer() const noexcept { return peer_; }

 private:
  int peer_;
};

// Counts the traffic of an endpoint. A send or receive is a call that moved at least one byte.
struct Counters {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t sends = 0;
  std::uint64_t receives = 0;

  friend bool operator==(const Counters&, const Counters&) = default;
};

// The conditions to wait for. readable: more bytes have arrived than have been lent or moved; wait
// for this only after a receive returned fewer bytes than it was asked for. writable: there is room
// to send. flushed: everything that was sent may be overwritten.
struct Interest {
  bool readable = false;
  bool writable = false;
  bool flushed = false;
};

// The descriptors that a sleeping thread polls, and the longest time it sleeps.
struct SleepPlan {
  std::vector<pollfd> descriptors;
  Deadline::Duration at_most = std::chrono::hours(24);
};

// The number of bytes of a destination to pass to try_receive_into() at a time; pass fewer only at
// the end of the destination. A transport that writes arriving data in place needs to know as much
// of the destination as possible.
inline constexpr std::size_t kLongestDestination = std::size_t{4} << 20;

// The caller that opened an endpoint owns it. No call blocks, except finish(). An endpoint exists
// before its connection does: until it is connected, nothing can be sent or received, and every
// call advances the connection attempt. Once the peer is lost, every call throws PeerLost. Calls
// throw Error(hcclSystemError) if this process lacks a resource. Thread safety: one thread at a
// time.
class Endpoint {
 public:
  Endpoint(int peer, const char* transport) : peer_(peer), transport_(transport) {}
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Takes a prefix of the bytes, perhaps none, and returns its size. The transport may read these
  // bytes in place until flushed() returns true.
  [[nodiscard]] std::size_t try_send(std::span<const std::byte> bytes) {
    return try_send_parts({&bytes, 1});
  }
  // Like try_send(), for the concatenation of `parts`.
  [[nodiscard]] virtual std::size_t try_send_parts(
      std::span<const std::span<const std::byte>> parts) = 0;
  // Returns whether all bytes taken by sends may be overwritten.
  [[nodiscard]] virtual bool flushed() = 0;

  // Lends at most `most` of the arrived bytes, from the first unreleased one on. They stay valid
  // until release() and have no alignment. Another call lends the same bytes again, with those that
  // have arrived since, up to view_limit(). Throws PeerLost once the peer is lost and nothing new
  // can be lent.
  [[nodiscard]] virtual std::span<const std::byte> try_receive(std::size_t most) = 0;
  // Gives back the first `count` lent bytes.
  virtual void release(std::size_t count) = 0;
  // Returns how many bytes try_receive() can lend in one piece. An element of at most this size can
  // always be lent whole once all of it has arrived.
  [[nodiscard]] virtual std::size_t view_limit() const = 0;
  // Moves arrived bytes to the destination, from the first unreleased one on, and returns their
  // number; they need no release(). After a partial receive the transport owns the rest of the
  // destination: keep passing that remainder, and neither call try_receive() nor pass another
  // destination, until it is full or the endpoint is cut().
  [[nodiscard]] virtual std::size_t try_receive_into(std::span<std::byte> destination) = 0;

  // Prepares a sleep until a condition of `interest` may hold. Adds the descriptors to poll to the
  // plan and returns true; end_sleep() must follow. Returns false if a condition may hold already.
  // Called by WaitSet.
  [[nodiscard]] virtual bool begin_sleep(Interest interest, SleepPlan& plan) = 0;
  // Ends a sleep that begin_sleep() prepared, and checks that the peer is alive.
  virtual void end_sleep() noexcept = 0;

  // Ends the stream in an orderly way; call it last. Blocks until the peer has received everything
  // sent, the peer is lost, or the deadline has passed.
  virtual void finish(Deadline /*deadline*/) noexcept {}
  // Aborts the stream. Once it returns, the transport accesses neither sources nor destinations,
  // and all other calls throw PeerLost.
  virtual void cut() noexcept {}

  [[nodiscard]] virtual bool connected() const = 0;
  [[nodiscard]] int peer() const { return peer_; }
  // Returns the transport's name, such as "shm".
  [[nodiscard]] const char* transport() const { return transport_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }

 protected:
  // Implements try_receive_into() by try_receive(), at most `slice` bytes at a time, so that the
  // sender soon gets its room back.
  std::size_t copy_lent(std::span<std::byte> destination, std::size_t slice) {
    std::size_t done = 0;
    while (done < destination.size()) {
      const auto lent = try_receive(std::min(slice, destination.size() - done));
      if (lent.empty()) break;
      std::memcpy(destination.data() + done, lent.data(), lent.size());
      release(lent.size());
      done += lent.size();
    }
    return done;
  }

  std::size_t count_sent(std::size_t bytes) {
    counters_.bytes_sent += bytes;
    counters_.sends += bytes > 0 ? 1 : 0;
    return bytes;
  }
  std::size_t count_received(std::size_t bytes) {
    counters_.bytes_received += bytes;
    counters_.receives += bytes > 0 ? 1 : 0;
    return bytes;
  }

 private:
  int peer_;
  const char* transport_;
  Counters counters_;
};

}  // namespace hccl::transport
