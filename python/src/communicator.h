// SPDX-License-Identifier: Apache-2.0
// One rank's membership in the communicator of a process group, and its streams.
#pragma once

#include "device.h"

#include <hccl.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace hccl_torch {

// A process group's name and ranks, for its communicator and for error texts.
struct GroupIdentity {
  std::string name;
  int rank = 0;
  int size = 1;
  std::vector<std::int64_t> global_ranks;  // by rank in the group; may be empty
};

class Communicator {
 public:
  // Joins the group. Rank 0 passes the unique id to the other ranks through `store`. Blocks until
  // all ranks have joined. Later calls wait for other ranks for at most `timeout`, or without a
  // limit if it is 0. Throws c10::DistBackendError, and the store's exceptions.
  Communicator(c10d::Store& store, GroupIdentity identity, std::chrono::milliseconds timeout);
  // Destroys the communicator, or aborts it if queued work has not run yet. Does not block.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Returns the library's communicator. Throws c10::DistBackendError after abort().
  [[nodiscard]] hcclComm_t get() const;
  [[nodiscard]] int rank() const noexcept { return identity_.rank; }
  [[nodiscard]] const GroupIdentity& identity() const noexcept { return identity_; }
  // Returns a string that names the group, this rank and the host.
  [[nodiscard]] std::string describe() const;

  // Returns the stream for collectives. This stream also carries the messages of coalesced calls.
  [[nodiscard]] const Stream& stream() const noexcept { return stream_; }
  // Return the stream for messages to `peer` or from `peer`. Messages have their own streams so
  // that they do not queue behind work that waits for other ranks. Throw c10::DistBackendError.
  // Thread safety: any thread.
  [[nodiscard]] const Stream& stream_to(int peer) { return message_stream({peer, true}); }
  [[nodiscard]] const Stream& stream_from(int peer) { return message_stream({peer, false}); }

  // Returns the reason why the communicator has failed, or an empty string if it has not.
  [[nodiscard]] std::string fault() const;
  [[nodiscard]] bool is_in_forked_child() const noexcept;
  [[nodiscard]] std::chrono::milliseconds timeout() const noexcept { return timeout_; }
  // Sets the maximum time for which calls wait for other ranks; 0 means no limit. Throws
  // c10::DistBackendError.
  void set_timeout(std::chrono::milliseconds timeout);
  // Fails all work of the communicator on every rank, and all later calls. Does not block.
  void abort() noexcept;
  // Returns whether all queued work has run.
  [[nodiscard]] bool is_idle();

 private:
  [[nodiscard]] const Stream& message_stream(std::pair<int, bool> way);

  const GroupIdentity identity_;
  Stream stream_;
  std::mutex mutex_;
  std::map<std::pair<int, bool>, std::unique_ptr<Stream>> message_streams_;
  hcclComm_t handle_ = nullptr;
  const pid_t process_;
  std::atomic<std::chrono::milliseconds> timeout_{};
  std::atomic<bool> aborted_{false};
};

}  // namespace hccl_torch
