// SPDX-License-Identifier: Apache-2.0
// What a rank looks after while it waits in a call across endpoints: faults, questions of others,
// the deadline, the hang report. And what it says when a peer is lost.
#pragma once

#include "base/deadline.h"
#include "bootstrap/bootstrap.h"
#include "comm/fabric.h"
#include "executor/drive.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hccl::comm {

class FabricWatch final : public executor::Watch {
 public:
  // For texts: the call's place, if it is a collective, what it is, and which ranks it waits for.
  FabricWatch(Fabric& fabric, std::optional<Place> place, std::function<std::string()> call,
              std::function<std::vector<int>()> awaited);
  ~FabricWatch() override;

  void glance() override;
  void look(bool moved) override;

 private:
  [[nodiscard]] bootstrap::Waiting waiting() const;
  void begin_patience();
  void answer_inquiry();
  void check_departed();
  void check_patience();
  [[noreturn]] void time_out() const;
  void report_hang();
  [[nodiscard]] std::string awaited_text() const;

  Fabric& fabric_;
  const std::optional<Place> place_;
  std::function<std::string()> call_;
  std::function<std::vector<int>()> awaited_;
  std::uint64_t answered_;
  // Since it last moved. The others are asked before the end, so that it can name whom it is about.
  struct Patience {
    void begin(Deadline::Duration limit);

    Deadline ask = Deadline::never();
    Deadline end = Deadline::never();
  };
  Inquiries::Time begin_;
  Patience patience_;
  Patience report_;
  // Calls that do not match may wait for each other; asking finds it.
  Deadline early_ask_ = Deadline::never();
  Deadline departed_ = Deadline::never();
};

// Throws the communicator's fault if word of one comes soon, for the peer may have gone because of
// it, else an Error that names the peer and says so if it has left. `wait_set` is rung by
// Fabric::wake().
[[noreturn]] void throw_lost(Fabric& fabric, transport::WaitSet& wait_set, const std::string& doing,
                             const transport::PeerLost& lost);

// Runs `body`; a peer that it loses is named as above. `doing()` says in what, `wait_set()` is one.
template <class Body, class Doing, class WaitSet>
void naming_the_lost(Fabric& fabric, WaitSet wait_set, Doing doing, Body body) {
  try {
    body();
  } catch (const transport::PeerLost& lost) {
    throw_lost(fabric, wait_set(), doing(), lost);
  }
}

}  // namespace hccl::comm
