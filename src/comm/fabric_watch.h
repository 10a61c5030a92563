// SPDX-License-Identifier: Apache-2.0
// Looks after everything else while a rank waits in a call across endpoints: faults, questions of
// others, the deadline, the hang report. Also words the error when a peer is lost.
#pragma once

#include "base/deadline.h"
#include "base/wait_limit.h"
#include "bootstrap/bootstrap.h"
#include "comm/fabric.h"
#include "device/command_queue.h"
#include "executor/drive.h"

#include <functional>
#include <string>
#include <vector>

namespace hccl::comm {

// The call that is watched, for texts and for the ranks that ask.
struct WatchedCall {
  // The place of the call, if it is a collective; else of the next collective of its stream.
  Place place;
  bool is_collective = true;
  std::function<std::string()> text;
  std::function<std::vector<int>()> awaited;  // ranks that it waits for now
  // The stream's queue: it knows whether the program waits for the stream.
  const device::Upcoming* stream = nullptr;
};

class FabricWatch final : public executor::Watch {
 public:
  FabricWatch(Fabric& fabric, WatchedCall call);
  ~FabricWatch() override;

  void glance() override;
  void look(bool moved) override;
  // Asks which ranks are to blame for calls that do not match. Blocks for at most a second. Throws
  // the fault that the answer has become, else `found`. `wait_set` is rung by Fabric::wake().
  [[noreturn]] void throw_mismatch(const executor::CallMismatch& found,
                                   transport::WaitSet& wait_set);

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
  const WatchedCall call_;
  std::uint64_t answered_;
  // Since it last moved. The others are asked before the end, so that it can name whom it is about.
  struct Patience {
    void begin(Deadline::Duration limit);

    Deadline ask = Deadline::never();
    Deadline end = Deadline::never();
  };
  Inquiries::Time begin_;
  WaitLimit::Value limit_;
  Patience patience_;
  Patience report_;
  // Calls that do not match may wait for each other. Asking finds it, at once or the second time.
  Deadline early_ask_ = Deadline::never();
  Deadline second_ask_ = Deadline::never();
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
