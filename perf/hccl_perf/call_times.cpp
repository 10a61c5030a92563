// SPDX-License-Identifier: Apache-2.0
// Records events after calls.
#include "call_times.h"

namespace hccl_perf {

CallTimes::CallTimes(Session& session, std::size_t calls) : session_(session) {
  events_.reserve(calls + 1);
  for (std::size_t i = 0; i <= calls; ++i) events_.push_back(session.make_event());
}

CallTimes::~CallTimes() {
  for (const synEventHandle event : events_) synEventDestroy(event);
}

void CallTimes::mark() { session_.record(events_.at(marked_++)); }

std::vector<double> CallTimes::nanoseconds() const {
  std::vector<double> times;
  times.reserve(marked_);
  for (std::size_t i = 1; i < marked_; ++i)
    times.push_back(Session::nanoseconds_between(events_[i - 1], events_[i]));
  return times;
}

}  // namespace hccl_perf
