// SPDX-License-Identifier: Apache-2.0
// Measures when each of several calls on a stream ends, by the device's clock: an event is recorded
// after each call.
#pragma once

#include "session.h"

#include <synapse_api.h>

#include <cstddef>
#include <vector>

namespace hccl_perf {

class CallTimes {
 public:
  // Creates the events for `calls` calls. Throws RunError.
  CallTimes(Session& session, std::size_t calls);
  ~CallTimes();
  CallTimes(const CallTimes&) = delete;
  CallTimes& operator=(const CallTimes&) = delete;

  // Records the next event in the stream. Call it before the first call and after each one.
  void mark();

  // Returns the nanoseconds between consecutive marks. Call it after the stream has reached the
  // last mark. Throws RunError.
  [[nodiscard]] std::vector<double> nanoseconds() const;

 private:
  Session& session_;
  std::vector<synEventHandle> events_;
  std::size_t marked_ = 0;
};

}  // namespace hccl_perf
