// SPDX-License-Identifier: Apache-2.0
// What a rank looks after while it waits in a call across endpoints: faults, the deadline, the hang
// report. And what it says when a peer is lost.
#pragma once

#include "base/deadline.h"
#include "comm/fabric.h"
#include "executor/drive.h"

#include <functional>
#include <string>
#include <vector>

namespace hccl::comm {

class FabricWatch final : public executor::Watch {
 public:
  // For texts: what is being done, and which ranks it waits for.
  FabricWatch(Fabric& fabric, std::function<std::string()> doing,
              std::function<std::vector<int>()> awaited);

  void look() override;

 private:
  [[nodiscard]] std::string awaited_text() const;

  Fabric& fabric_;
  std::function<std::string()> doing_;
  std::function<std::vector<int>()> awaited_;
  Deadline deadline_;
  Deadline report_;
};

// Throws the communicator's fault if word of one comes soon, for the peer may have gone because of
// it, else an Error that names the peer. `wait_set` is rung by Fabric::wake().
[[noreturn]] void throw_lost(const Fabric& fabric, transport::WaitSet& wait_set,
                             const std::string& doing, const transport::PeerLost& lost);

// Runs `body`; a peer that it loses is named as above. `doing()` says in what.
template <class Body, class Doing>
void naming_the_lost(const Fabric& fabric, transport::WaitSet& wait_set, Doing doing, Body body) {
  try {
    body();
  } catch (const transport::PeerLost& lost) {
    throw_lost(fabric, wait_set, doing(), lost);
  }
}

}  // namespace hccl::comm
