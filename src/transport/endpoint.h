// SPDX-License-Identifier: Apache-2.0
// One end of an ordered, flow-controlled stream of bytes to one peer on one channel. Both sides
// know how many bytes come in which order, so a stream has no messages and no headers.
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

// The peer's process, its host or the way to it is gone. The text says what happened to which
// connection. Data that the peer sent before may still be received, except where the network
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

// The condition on which an endpoint is waited for: bytes beyond those that it has lent or moved,
// so its owner sleeps only after a call that gave less than it wanted; or room for more.
struct Interest {
  bool readable = false;
  bool writable = false;
  bool flushed = false;  // what was taken
};

// The descriptors that a sleeping thread polls, and for how long at most.
struct SleepPlan {
  std::vector<pollfd> descriptors;
  Deadline::Duration at_most = std::chrono::hours(24);
};

// The part of a long destination to name at a time: a transport that stores arriving data by itself
// should know of as much as it can.
inline constexpr std::size_t kLongestDestination = std::size_t{4} << 20;

// Owned by whoever opened it; one thread at a time; no call blocks. An endpoint exists before its
// connection does: until then nothing can be sent and nothing has come, and every call carries the
// connection on. Calls throw PeerLost, always again once they have, and Error where this process
// lacks something.
class Endpoint {
 public:
  Endpoint(int peer, const char* transport) : peer_(peer), transport_(transport) {}
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Takes a prefix of the bytes, perhaps none, and returns its size. The bytes it has taken
  // may still be read in place until flushed().
  [[nodiscard]] std::size_t try_send(std::span<const std::byte> bytes) {
    return try_send_parts({&bytes, 1});
  }
  // The same of the concatenation of `parts`, in one go.
  [[nodiscard]] virtual std::size_t try_send_parts(
      std::span<const std::span<const std::byte>> parts) = 0;
  // Returns whether everything that was taken may be overwritten.
  [[nodiscard]] virtual bool flushed() = 0;

  // Lends at most `most` of the bytes that have come, from the first unreleased one on; fewer if
  // fewer have come. They stay where they are until release(). Called again it lends them again,
  // with what has come since, until they are view_limit(). They may lie at any address. Once the
  // peer is lost, throws as soon as it has nothing new to lend.
  [[nodiscard]] virtual std::span<const std::byte> try_receive(std::size_t most) = 0;
  // Gives the first `count` lent bytes back.
  virtual void release(std::size_t count) = 0;
  // So many bytes come in one piece, if the sender sends them: an element of this size is never
  // lent in two halves for good.
  [[nodiscard]] virtual std::size_t view_limit() const = 0;
  // Moves what has come straight to its destination and returns how much; begins with the first
  // unreleased byte, which need not be released then. The rest of a destination is no longer the
  // caller's: it goes on with that, and nothing else of this stream, until it is full or cut().
  [[nodiscard]] virtual std::size_t try_receive_into(std::span<std::byte> destination) = 0;

  // For WaitSet. Adds to the plan what to poll until what is of interest may be there; false if it
  // may be there already, then there is nothing to end. Else end_sleep() must follow.
  [[nodiscard]] virtual bool begin_sleep(Interest interest, SleepPlan& plan) = 0;
  // Ends what begin_sleep() began; looks after a peer that has been silent for long.
  virtual void end_sleep() noexcept = 0;

  // Before it ends in good order: waits until the peer has what was sent, or cannot get it, or the
  // deadline has passed. Nothing else is asked of it then.
  virtual void finish(Deadline /*deadline*/) noexcept {}
  // The stream is given up: from now on nothing is read from memory that was sent from or stored in
  // memory that was received into. Calls throw PeerLost.
  virtual void cut() noexcept {}

  [[nodiscard]] virtual bool connected() const = 0;
  [[nodiscard]] int peer() const { return peer_; }
  // "shm", "tcp": the transport's name.
  [[nodiscard]] const char* transport() const { return transport_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }

 protected:
  // try_receive_into() of those that lend: at most `slice` at a time, so that what has been taken
  // can be given back soon.
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
