// SPDX-License-Identifier: Apache-2.0
// When each of several calls on a stream ends, as the device's clock tells: an event stands behind
// every call.
#pragma once

#include "session.h"

#include <synapse_api.h>

#include <cstddef>
#include <vector>

namespace hccl_perf {

class CallTimes {
 public:
  // Makes the events for `calls` calls. Throws RunError.
  CallTimes(Session& session, std::size_t calls);
  ~CallTimes();
  CallTimes(const CallTimes&) = delete;
  CallTimes& operator=(const CallTimes&) = delete;

  // Marks the place in the stream before the first call, and then behind each.
  void mark();

  // Nanoseconds from each mark to the next. Call when the stream has run them all. Throws RunError.
  [[nodiscard]] std::vector<double> nanoseconds() const;

 private:
  Session& session_;
  std::vector<synEventHandle> events_;
  std::size_t marked_ = 0;
};

}  // namespace hccl_perf
