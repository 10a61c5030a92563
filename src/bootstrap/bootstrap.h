// SPDX-License-Identifier: Apache-2.0
// How the ranks of a communicator find each other: a rendezvous over TCP at the address in the
// unique id, then an exchange of descriptors between the ranks of each node over abstract unix
// sockets.
#pragma once

#include "base/deadline.h"
#include "base/file_descriptor.h"
#include "base/secret.h"
#include "bootstrap/frame_seal.h"

#include <hccl_types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hccl::bootstrap {

struct RankTable;

// A rank's contribution. To the others of its node: bytes, and one descriptor (its device memory).
// And to all: what `announce` returns, given the communicator's secret, at most kMostAnnounced
// bytes; called once, if there are several nodes or if it always is to be.
struct Contribution {
  std::vector<std::byte> blob;
  FileDescriptor memory;
  std::function<std::vector<std::byte>(const Secret&)> announce;
  bool announces_always = false;
  // Called once everything from the ranks of this node has come, before the others hear that this
  // rank is ready. Throws Error to refuse it; then initialisation fails on all ranks.
  std::function<void(const RankTable&)> inspect;
};
inline constexpr std::size_t kMostAnnounced = 1024;

// A rank's knowledge of another after the exchange (its own entry included).
struct RankInfo {
  int rank = -1;
  int pid = 0;               // in its own pid namespace
  bool shares_pids = false;  // which is this process's, too
  std::string host;
  std::string box;  // of the ranks of one node it is the same
  std::vector<std::byte> announced;
  // These are empty for ranks on other nodes.
  std::vector<std::byte> blob;
  FileDescriptor memory;
  FileDescriptor process;  // pidfd; readable once the process has gone. Invalid for ranks of this
                           // very process.
};

// A rank's connection to the id server, where it hears of other nodes: see ControlLink.
struct LinkSocket {
  FileDescriptor socket;          // invalid if all ranks are on one node
  std::vector<std::byte> heard;   // what has been read from it already
  int rank = -1;                  // its own
  int server_rank = -1;           // of the process that serves; -1: it is no rank
  std::string server;             // the same as people read it
  std::optional<FrameSeal> seal;  // the codes of its frames
  bool server_is_known = false;   // by a key or by the kernel; else its texts are only quoted
};

struct RankTable {
  std::vector<RankInfo> members;  // by rank
  FileDescriptor control;         // the segment made by this node's leader, shared by its ranks
  Secret secret{};
  LinkSocket link;
};

// Starts an id server in this process and fills `id` with its address and a 128-bit secret; in
// HCCL_COMM_ID mode the first id of the process is bound to that address. Throws Error.
[[nodiscard]] hcclUniqueId create_unique_id();

// Stops the server of this id if this process owns it (at communicator destruction).
void retire_unique_id(const hcclUniqueId& id) noexcept;
// Tells those who have joined, if this process owns the server, that somebody will not come.
void abandon_unique_id(const hcclUniqueId& id, const std::string& why) noexcept;

// The id a rank joins with: `id` itself, or for the process's first communicator in HCCL_COMM_ID
// mode, that address. Throws Error(hcclInvalidArgument) for an id that is neither. Consumes the
// "first communicator" right.
[[nodiscard]] hcclUniqueId resolve_unique_id(const hcclUniqueId& id);

// Blocks until all `size` ranks have joined with the same id, or throws Error: deadline (names the
// ranks missing), death of a rank (names it), a rank claimed twice, different sizes. `make_control`
// is called on the leader of each node (its lowest rank) alone and makes the segment that the
// node's ranks share, given how many they are.
using MakeControl = std::function<FileDescriptor(int ranks)>;
[[nodiscard]] RankTable join(const hcclUniqueId& id, int size, int rank, Contribution mine,
                             const MakeControl& make_control, Deadline deadline);

// A call of a rank: one that waits, or one of the last that are done.
struct Waiting {
  std::string position;      // "op 3 of stream 0"; empty for messages, which have none
  std::string call;          // as people read it; empty if it is in none
  std::string algorithm;     // that it runs by, if it has a position
  std::vector<int> awaited;  // ascending
  bool done = false;
  // The position of the next collective that cannot begin, or end, on this rank before this call
  // ends, because a thread of the program waits for the call's stream. Empty if the program may
  // still make other calls.
  std::string blocks{};

  [[nodiscard]] std::string doing() const {
    return position.empty() ? call : position + ", " + call;
  }
};

// Tells the ranks of several nodes of each other after initialisation: of faults, departures, and
// the loss of a rank or of its node, which ends the connection or leaves its keep-alives
// unanswered.
class ControlLink {
 public:
  // All from the control thread.
  struct Callbacks {
    // The communicator has failed elsewhere. At most once.
    std::function<void(hcclResult_t code, const std::string& text)> fault;
    // A rank has left the communicator.
    std::function<void(int rank)> departed = nullptr;
    // A rank has waited for long: answer() is to tell what this one does, in each of its calls.
    std::function<void()> inquiry = nullptr;
    // Answers this rank's question: names, as a clause, the ranks that hold it up in the end.
    std::function<void(const std::string& root_cause)> verdict = nullptr;
  };

  ControlLink(LinkSocket socket, Callbacks callbacks);
  // Says that this rank leaves, and waits for a callback in progress. The process may end after
  // that: nobody takes it for a fault.
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  // No callback runs any more when it returns, and none will, whoever else holds the link; but from
  // within a callback.
  void cancel() noexcept;
  // Tells the other nodes; from any thread. Where there is no memory for that, the connection ends,
  // which they take for the end of this rank.
  void raise(hcclResult_t code, const std::function<std::string()>& make_text) noexcept;
  // This rank waits for long: all are asked what they wait for, and the verdict follows within half
  // a second if the server can be reached. From any thread. Throws std::bad_alloc.
  void ask_who_is_missing(const Waiting& waiting);
  // From any thread. Throws std::bad_alloc.
  void answer(const Waiting& waiting);

 private:
  struct State;
  void send(FrameType type, std::vector<std::byte> payload);

  std::shared_ptr<State> state_;
};

// Ends the control thread until something needs it again; servers and watches then rest. Waits for
// a callback in progress.
void stop_control_thread() noexcept;

// Calls `on_exit` once, from the control thread, when the process behind `pidfd` has gone.
// Cancelled by destroying the watch (which waits for a callback in progress, unless called from
// it).
class ProcessWatch {
 public:
  ProcessWatch() = default;
  ProcessWatch(FileDescriptor pidfd, std::function<void()> on_exit);
  ProcessWatch(ProcessWatch&&) noexcept;
  ProcessWatch& operator=(ProcessWatch&&) noexcept;
  ~ProcessWatch();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hccl::bootstrap
