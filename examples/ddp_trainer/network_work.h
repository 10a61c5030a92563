// SPDX-License-Identifier: Apache-2.0
// Queues collectives on the network stream, ordered with the compute stream by events.
#pragma once

#include "gradient_sync.h"
#include "trace.h"

#include <utility>

namespace ddp_trainer {

class NetworkWork {
 public:
  explicit NetworkWork(const Rank& rank)
      : rank_(rank), computed_(*rank.device), communicated_(*rank.device) {}

  // Calls `call`, which queues work on the network stream. The work starts when everything queued
  // so far on the compute stream has run.
  template <class Call>
  void begin(const char* name, std::size_t bytes, Call call) {
    rank_.compute->record(computed_);
    rank_.network->wait_for(computed_);
    const auto span = rank_.trace->begin(*rank_.network, Lane::network, name, bytes);
    call();
    Trace::end(*rank_.network, span);
  }
  // Makes the compute stream wait for all work queued so far on the network stream.
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
