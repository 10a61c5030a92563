// SPDX-License-Identifier: Apache-2.0
// Measures, by the device's clock, when each of several calls on a stream ends: an event is
// recorded after each call.
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

  // Records the next event on the stream. Call it before the first call and after each call.
  void mark();

  // Returns the nanoseconds between consecutive events. Call it after the stream has reached the
  // last event. Throws RunError.
  [[nodiscard]] std::vector<double> nanoseconds() const;

 private:
  Session& session_;
  std::vector<synEventHandle> events_;
  std::size_t marked_ = 0;
};

}  // namespace hccl_perf
