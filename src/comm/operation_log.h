// SPDX-License-Identifier: Apache-2.0
// Logs a communicator's calls as they run: the path that each kind of call takes (HCCL_EXPLAIN,
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

// Identifies a piece of work by its stream's id and its ticket.
struct WorkId {
  std::uint64_t stream = 0;
  std::uint64_t ticket = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 mistakes the operator for a null pointer
  friend auto operator<=>(const WorkId&, const WorkId&) = default;
};

class OperationLog {
 public:
  // The ranks of a node take the same paths, so only the rank with `explains_for_node` set explains
  // them.
  OperationLog(const Config& settings, int rank, bool explains_for_node);

  // Returns whether any calls are logged. Hot paths check this first.
  [[nodiscard]] bool enabled() const { return tells_paths_ || traces_; }
  [[nodiscard]] bool traces() const { return traces_; }

  // Logs the path of a call, once for each combination of collective, size class (powers of two)
  // and kind of memory. Calls `path` only if it logs.
  void note_path(Collective collective, std::uint64_t bytes, bool on_host,
                 const std::function<CallPath()>& path);
  // Logs that a call has been queued. `call` is a text such as "all_reduce(1000, float, sum)".
  void note_queued(const std::string& call, std::uint64_t bytes, const WorkId& work) const;
  // Runs the work and logs its start and its end. If the work would block and is run again, only
  // the first start is logged.
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
  std::set<std::pair<Collective, int>> told_;  // size class and kind of memory in one number
  std::map<WorkId, TimePoint> running_;
};

}  // namespace hccl::comm
