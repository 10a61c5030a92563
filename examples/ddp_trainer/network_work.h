// SPDX-License-Identifier: Apache-2.0
// Queues a collective on the network stream between two points of the compute stream.
#pragma once

#include "gradient_sync.h"
#include "trace.h"

#include <utility>

namespace ddp_trainer {

class NetworkWork {
 public:
  explicit NetworkWork(const Rank& rank)
      : rank_(rank), computed_(*rank.device), communicated_(*rank.device) {}

  // Queues the work of `call` on the network stream. It begins when the compute stream has reached
  // this point.
  template <class Call>
  void begin(const char* name, std::size_t bytes, Call call) {
    rank_.compute->record(computed_);
    rank_.network->wait_for(computed_);
    const auto span = rank_.trace->begin(*rank_.network, Lane::network, name, bytes);
    call();
    Trace::end(*rank_.network, span);
  }
  // Makes the compute stream wait for all work that has been queued.
  void join() {
    rank_.network->record(communicated_);
    rank_.compute->wait_for(communicated_);
  }

 private:
  Rank rank_;
  Event computed_;
  Event communicated_;
};

}  // namespace ddp_trainer
