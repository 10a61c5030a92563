// SPDX-License-Identifier: Apache-2.0
// The interface between a communicator and its back end. A communicator queues calls in program
// order, and its back end runs them with the other ranks. The back end is chosen when the
// communicator is created.
#pragma once

#include "base/deadline.h"
#include "base/waiter.h"
#include "call/collective_call.h"
#include "call/lookahead.h"
#include "call/point_to_point.h"

#include <hccl_types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace hccl {

// The path of a call and the reason for it, as text for people.
struct CallPath {
  std::string name;
  std::string reason;
};

// The steps of a call, as text for people or as a JSON list.
struct PlanSteps {
  std::string algorithm;
  std::string transport;
  std::string steps;
};

struct PlanRequest {
  Collective collective = Collective::barrier;
  std::uint64_t bytes = 0;  // size of the message, or of one block
  int root = 0;
  bool in_place = false;
  bool as_json = false;
};

struct TrafficReport {
  std::string algorithm;  // of the last call
  std::string transport;  // such as "shm+tcp"
  // Totals over all completed calls that used transports.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t sends = 0;
  std::uint64_t receives = 0;
};

// A message that another rank has offered.
struct Offer {
  int source = -1;
  std::uint64_t bytes = 0;
};

// The fault that ended a communicator, or the reason why it cannot work at present; the code is
// hcclSuccess if there is neither.
struct AsyncError {
  hcclResult_t code = hcclSuccess;
  std::string text;
};

// The position of sends and receives relative to the collectives of their stream.
struct MessagePlace {
  std::uint32_t ordinal = 0;     // of the stream, or the next free one if it has none yet
  bool has_collectives = false;  // whether collectives have been queued on the stream
};

// The part of a back end that serves one stream. The communicator queues the stream's calls, which
// run one at a time in stream order.
class BackendStream {
 public:
  BackendStream() = default;
  virtual ~BackendStream() = default;
  BackendStream(const BackendStream&) = delete;
  BackendStream& operator=(const BackendStream&) = delete;

  // Called before the stream's first collective is queued. `ordinal` is the number of the
  // communicator's streams that had collectives before this stream; it is the same on all ranks.
  // Throws Error.
  virtual void begin_collectives(std::uint32_t ordinal) = 0;
  // Gives a send or receive its number among all calls in the same direction with the same peer.
  // Called in program order.
  virtual void number(PointToPoint& call) = 0;

  // Run calls in stream order. `staging` is the address of the stream's staging buffer, through
  // which the calls' host memory is copied, or 0. Block until this rank's part is complete and
  // return true. Unless the wait budget of `ahead` is unlimited, they may return false instead, and
  // are then called again with the same arguments. Throw Error.
  virtual bool run(const CollectiveCall& call, std::uint64_t staging, CallLookahead& ahead) = 0;
  virtual bool exchange(std::span<const PointToPoint> calls, const MessagePlace& place,
                        std::uint64_t staging, GroupLookahead& ahead) = 0;
};

// Thread safety: any thread, unless a function says otherwise.
class Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // Opens the back end's part of a stream, which exists until close_stream() or the destruction of
  // the back end. A stream is closed only after all its calls have run. `stream` is an id that is
  // never reused.
  [[nodiscard]] virtual BackendStream& open_stream(std::uint64_t stream) = 0;
  virtual void close_stream(BackendStream& stream) noexcept = 0;

  // Waits, for at most a second, until no other rank reads the stream's staging buffer. Call when
  // all calls of the stream have run. Returns false if the buffer must not be freed.
  [[nodiscard]] virtual bool release_staging(BackendStream& /*stream*/) noexcept { return true; }
  // Return whether this rank's host memory goes through a staging buffer in device memory.
  [[nodiscard]] virtual bool needs_staging(const CollectiveCall& call) const = 0;
  [[nodiscard]] virtual bool needs_staging(const PointToPoint& call) const = 0;
  // Returns whether ranks share cores. If they do, a rank should queue many calls before it waits.
  [[nodiscard]] virtual bool ranks_share_cores() const = 0;

  // Returns whether the communicator has ended with a fault.
  [[nodiscard]] virtual bool failed() const = 0;
  virtual void throw_if_failed() const = 0;
  // Returns the fault, or else the reason why calls cannot proceed at present.
  [[nodiscard]] virtual AsyncError async_error() const = 0;
  // Raises a fault on all ranks, unless there is one already. The fault's text consists of the name
  // of this rank and `why`.
  virtual void fail(hcclResult_t code, const char* why) noexcept = 0;
  // Raises a fault because the process of rank `peer` of this node has ended. Called by the control
  // thread.
  virtual void peer_died(int peer) noexcept = 0;
  // Ends this rank's membership: this rank begins no further call, and peers that wait for it fail.
  virtual void depart() = 0;
  // Sets the time-out of this rank's waits for other ranks; 0 means none.
  virtual void set_wait_limit(std::uint64_t milliseconds) = 0;

  // Searches the ranks round robin, starting at `first`, for a message for which no receive is
  // queued, and returns that message. Blocks until there is one or the deadline passes, unless
  // `only_looks` is set. `queueing` is the lock under which calls are numbered. Throws the
  // communicator's fault.
  [[nodiscard]] virtual std::optional<Offer> probe(int first, bool only_looks, Deadline deadline,
                                                   SpinLock& queueing) = 0;

  // Returns this rank's traffic with `peer`, or with all ranks if `peer` is empty.
  [[nodiscard]] virtual TrafficReport traffic(std::optional<int> peer) const = 0;
  // Returns the steps by which this rank would run a call.
  [[nodiscard]] virtual PlanSteps plan_of(const PlanRequest& request) const = 0;
  // Return the path of a call with other ranks, and the reason.
  [[nodiscard]] virtual CallPath path_of(const CollectiveCall& call) const = 0;
  [[nodiscard]] virtual CallPath path_of(const PointToPoint& call) const = 0;
};

}  // namespace hccl
