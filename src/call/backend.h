// SPDX-License-Identifier: Apache-2.0
// The interface between a communicator and its back end. The communicator queues calls in program
// order, and the back end runs them with the other ranks. The back end is chosen when the
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

// The path that a call takes, and the reason, as text for users.
struct CallPath {
  std::string name;
  std::string reason;
};

// A description of how a call runs. `steps` is text for users or a JSON list.
struct PlanSteps {
  std::string algorithm;
  std::string transport;
  std::string steps;
};

struct PlanRequest {
  Collective collective = Collective::barrier;
  std::uint64_t bytes = 0;  // of the message or, in a collective with blocks, of one block
  int root = 0;
  bool in_place = false;
  bool as_json = false;
};

struct TrafficReport {
  std::string algorithm;  // of the last call
  std::string transport;  // such as "shm+tcp"
  // Sums over all completed calls that used transports.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t sends = 0;
  std::uint64_t receives = 0;
};

// A message that another rank has begun to send to this rank.
struct Offer {
  int source = -1;
  std::uint64_t bytes = 0;
};

// The fault that ended a communicator, or the reason why its calls cannot proceed at present. If
// there is neither, the code is hcclSuccess.
struct AsyncError {
  hcclResult_t code = hcclSuccess;
  std::string text;
};

// The position of sends and receives relative to the collectives of their communicator: the ordinal
// of their stream (see BackendStream::begin_collectives()).
struct MessagePlace {
  std::uint32_t ordinal = 0;     // of the stream, or the next free ordinal if the stream has none
  bool has_collectives = false;  // whether collectives have been queued on the stream
};

// A back end's state for one stream. Runs the calls that the communicator has queued on the stream,
// one at a time, in stream order.
class BackendStream {
 public:
  BackendStream() = default;
  virtual ~BackendStream() = default;
  BackendStream(const BackendStream&) = delete;
  BackendStream& operator=(const BackendStream&) = delete;

  // Called before the stream's first collective is queued. `ordinal` counts the communicator's
  // streams that had collectives earlier; it is the same on all ranks. Throws Error.
  virtual void begin_collectives(std::uint32_t ordinal) = 0;
  // Sets call.number to the position of the call among all calls with the same peer and direction.
  // Called in program order.
  virtual void number(PointToPoint& call) = 0;

  // These functions run calls in stream order, and copy data in host memory through the stream's
  // staging buffer; `staging` is its address, or 0 if there is none. They block until this rank's
  // part is complete, and return true. If the wait budget of `ahead` is limited, they may return
  // false earlier; the caller then repeats the call with the same arguments. They throw Error.
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

  // Creates the back end's state for a stream. `stream` is an id that is never reused. The state
  // exists until close_stream(), which the communicator calls after all calls of the stream have
  // run, or until the back end is destroyed.
  [[nodiscard]] virtual BackendStream& open_stream(std::uint64_t stream) = 0;
  virtual void close_stream(BackendStream& stream) noexcept = 0;

  // Blocks, for at most a second (50 ms if the communicator has failed), until no other rank reads
  // the stream's staging buffer. Returns false if another rank may still read the buffer, so that
  // it must not be freed. Call it after all calls of the stream have run.
  [[nodiscard]] virtual bool release_staging(BackendStream& /*stream*/) noexcept { return true; }
  // Return whether this rank's part of the call needs a staging buffer in device memory.
  [[nodiscard]] virtual bool needs_staging(const CollectiveCall& call) const = 0;
  [[nodiscard]] virtual bool needs_staging(const PointToPoint& call) const = 0;
  // Returns whether ranks share cores. If so, a rank should queue many calls before it waits.
  [[nodiscard]] virtual bool ranks_share_cores() const = 0;

  // Returns whether a fault has ended the communicator.
  [[nodiscard]] virtual bool failed() const = 0;
  virtual void throw_if_failed() const = 0;
  // Returns the fault. Without a fault, returns the reason why calls cannot proceed at present.
  [[nodiscard]] virtual AsyncError async_error() const = 0;
  // Raises a fault on all ranks, unless the communicator has already failed. The text of the fault
  // names this rank and contains `why`.
  virtual void fail(hcclResult_t code, const char* why) noexcept = 0;
  // Raises a fault because the process of another rank on this node has exited. `peer` is the local
  // rank of that process. Called by the control thread.
  virtual void peer_died(int peer) noexcept = 0;
  // Ends this rank's membership: this rank begins no more calls, and other ranks' calls fail if
  // they need this rank.
  virtual void depart() = 0;
  // Limits how long this rank waits for other ranks; 0 means no limit.
  virtual void set_wait_limit(std::uint64_t milliseconds) = 0;

  // Returns a message that another rank offers to this rank and for which no receive is queued.
  // Checks the ranks in cyclic order, starting at rank `first`. Blocks until there is such a
  // message, or returns nothing when the deadline passes; if `only_looks`, does not block.
  // `queueing` is the lock that the communicator holds while it numbers calls. Throws the recorded
  // fault if the communicator has failed.
  [[nodiscard]] virtual std::optional<Offer> probe(int first, bool only_looks, Deadline deadline,
                                                   SpinLock& queueing) = 0;

  // Returns this rank's traffic with `peer`, or with all ranks if `peer` is empty.
  [[nodiscard]] virtual TrafficReport traffic(std::optional<int> peer) const = 0;
  // Describes how this rank would run a call.
  [[nodiscard]] virtual PlanSteps plan_of(const PlanRequest& request) const = 0;
  // Return the path that a call with other ranks takes, and the reason.
  [[nodiscard]] virtual CallPath path_of(const CollectiveCall& call) const = 0;
  [[nodiscard]] virtual CallPath path_of(const PointToPoint& call) const = 0;
};

}  // namespace hccl
