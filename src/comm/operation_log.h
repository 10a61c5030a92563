// SPDX-License-Identifier: Apache-2.0
// Logs a communicator's calls: the path that each kind of call takes (HCCL_EXPLAIN,
// HCCL_DEBUG=DEBUG), and when each call was queued, started and ended (HCCL_DEBUG=TRACE).
#pragma once

#include "base/config.h"
#include "call/backend.h"
#include "device/progress.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace hccl::comm {

// Identifies a piece of work: the id of its stream, and its ticket there.
struct WorkId {
  std::uint64_t stream = 0;
  std::uint64_t ticket = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 mistakes the operator for a null pointer
  friend auto operator<=>(const WorkId&, const WorkId&) = default;
};

class OperationLog {
 public:
  // `explains_for_node`: whether this rank logs paths under HCCL_EXPLAIN. One rank of each node is
  // enough, because the ranks of a node take the same paths.
  OperationLog(const Config& settings, int rank, bool explains_for_node);

  // Returns whether any calls are logged. Hot paths check this before they build arguments.
  [[nodiscard]] bool enabled() const { return tells_paths_ || traces_; }
  [[nodiscard]] bool traces() const { return traces_; }

  // Logs the path of a call, once for each combination of collective, size class (powers of two)
  // and kind of memory. Calls path() only if it logs.
  void note_path(Collective collective, std::uint64_t bytes, bool on_host,
                 const std::function<CallPath()>& path);
  // Logs that a call has been queued. `call` is a string such as "all_reduce(1000, float, sum)".
  void note_queued(const std::string& call, std::uint64_t bytes, const WorkId& work) const;
  // Runs the work, and logs its start and its end. Returns what run() returns: if that is
  // would_block, the caller calls trace() again later, which does not log the start again.
  [[nodiscard]] device::Outcome trace(const std::string& call, const std::string& path,
                                      const WorkId& work,
                                      const std::function<device::Outcome()>& run);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  const int rank_;
  const bool explains_;
  const bool tells_paths_;
  const bool traces_;
  std::mutex mutex_;
  std::set<std::pair<Collective, int>> told_;  // size class * 2, plus 1 for host memory
  std::map<WorkId, TimePoint> running_;
};

}  // namespace hccl::comm
