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

// Thrown when the peer's process has exited or refuses the connection, when its host or the path to
// it has failed, or when this rank has cut the stream. The text names the connection and the cause.
// Data that the peer sent earlier may still be received, unless the network dropped it.
class PeerLost : public Error {
 public:
  PeerLost(int peer, const std::string& message) : Error(hcclSystemError, message), peer_(peer) {}

  [[nodiscard]] int peer() const noexcept { return peer_; }

 private:
  int peer_;
};

// The traffic of an endpoint. Sends and receives that moved no bytes are not counted.
struct Counters {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t sends = 0;
  std::uint64_t receives = 0;

  friend bool operator==(const Counters&, const Counters&) = default;
};

// The conditions to wait for. readable: bytes have arrived that no receive has returned yet; wait
// for this only after a receive returned fewer bytes than requested. writable: there is room to
// send. flushed: Endpoint::flushed() returns true.
struct Interest {
  bool readable = false;
  bool writable = false;
  bool flushed = false;
};

// The descriptors that a thread polls while it sleeps, and the maximum time that it sleeps.
struct SleepPlan {
  std::vector<pollfd> descriptors;
  Deadline::Duration at_most = std::chrono::hours(24);
};

// The maximum number of bytes to pass to try_receive_into(). Split a longer destination into pieces
// of this size; only the last piece may be shorter. A transport that writes arriving data in place
// can write only to the piece that it was passed.
inline constexpr std::size_t kLongestDestination = std::size_t{4} << 20;

// The caller that opened an endpoint owns it. No call blocks, except finish(). Until connected()
// returns true, sends and receives move no bytes, but they advance the connection attempt. After
// the peer is lost, sends throw PeerLost; receives throw it when no arrived bytes are left. Calls
// throw Error(hcclSystemError) if this process lacks a resource. Thread safety: one thread at a
// time.
class Endpoint {
 public:
  Endpoint(int peer, const char* transport) : peer_(peer), transport_(transport) {}
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Accepts a prefix of the bytes, possibly empty, and returns its size. The transport may read
  // these bytes in place until flushed() returns true.
  [[nodiscard]] std::size_t try_send(std::span<const std::byte> bytes) {
    return try_send_parts({&bytes, 1});
  }
  // Does the same for the concatenation of `parts`.
  [[nodiscard]] virtual std::size_t try_send_parts(
      std::span<const std::span<const std::byte>> parts) = 0;
  // Returns whether the caller may overwrite the memory of all bytes accepted so far by try_send()
  // and try_send_parts(), and the transport has passed them on. Also returns false while the peer
  // can still write to destinations that try_receive_into() has filled. Tries to pass on the bytes
  // that the transport has not passed on yet. Throws PeerLost if that fails.
  [[nodiscard]] virtual bool flushed() = 0;

  // Lends at most `most` of the arrived bytes, starting at the first unreleased byte. The bytes
  // stay valid until release(), and have no particular alignment. Another call lends the same bytes
  // again, together with those that have arrived since, up to view_limit(). Throws PeerLost if the
  // peer is lost and no new bytes can be lent.
  [[nodiscard]] virtual std::span<const std::byte> try_receive(std::size_t most) = 0;
  // Gives back the first `count` lent bytes.
  virtual void release(std::size_t count) = 0;
  // Returns the maximum number of bytes that try_receive() can lend in one piece. An element of at
  // most this size can be lent whole once all of it has arrived.
  [[nodiscard]] virtual std::size_t view_limit() const = 0;
  // Moves arrived bytes, starting at the first unreleased one, to the destination, and returns
  // their number. These bytes need no release(). After a partial receive, the transport owns the
  // rest of the destination. Until that rest is full or the endpoint is cut(), keep passing it; do
  // not call try_receive() or pass another destination.
  [[nodiscard]] virtual std::size_t try_receive_into(std::span<std::byte> destination) = 0;

  // Prepares a sleep until a condition of `interest` may be true. Adds to the plan the descriptors
  // that must be polled, and returns true; the caller must then call end_sleep(). Returns false if
  // a condition may be true already. Called by WaitSet.
  [[nodiscard]] virtual bool begin_sleep(Interest interest, SleepPlan& plan) = 0;
  // Ends a sleep that begin_sleep() prepared, and checks whether the peer is alive.
  virtual void end_sleep() noexcept = 0;

  // Closes the stream gracefully. No other call may follow. Blocks until the peer has received
  // everything that was sent, the peer is lost, or the deadline has passed.
  virtual void finish(Deadline /*deadline*/) noexcept {}
  // Aborts the stream. After cut() has returned, the transport accesses neither sources nor
  // destinations. Later sends and receives may throw PeerLost.
  virtual void cut() noexcept {}

  [[nodiscard]] virtual bool connected() const = 0;
  [[nodiscard]] int peer() const { return peer_; }
  // Returns the transport's name, such as "shm".
  [[nodiscard]] const char* transport() const { return transport_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }

 protected:
  // Implements try_receive_into() with try_receive(). Copies at most `slice` bytes at a time, so
  // that the sender soon gets room again.
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
