// SPDX-License-Identifier: Apache-2.0
// The root server of one unique id: admits ranks and runs their rendezvous.
#pragma once

#include "bootstrap/control_thread.h"
#include "bootstrap/event_loop.h"
#include "bootstrap/fault_relay.h"
#include "bootstrap/missing_reports.h"
#include "bootstrap/process_watch.h"
#include "bootstrap/rank_admission.h"
#include "bootstrap/rank_connections.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/stall_judge.h"
#include "bootstrap/unique_id.h"

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hccl::bootstrap {

// Runs on the control thread. Thread safety: any thread may call the public members.
class RootServer final : public std::enable_shared_from_this<RootServer>,
                         private RankAdmission::Owner,
                         private RankConnections::Owner {
 public:
  // `key` and `hello_limit`: see RankAdmission. Throws Error.
  RootServer(UniqueId id, FileDescriptor listener, JoinKey key,
             std::chrono::milliseconds hello_limit = std::chrono::seconds(5));

  void start();
  // Closes the server, even during a rendezvous. Does not block.
  void stop();
  // Closes the server after the rendezvous in progress has ended, because its ranks may still be
  // connecting. A server that relays messages closes only after all its connections have ended.
  void retire();
  // Fails the rendezvous in progress, because one of its ranks will not join. If no rank has joined
  // yet, closes the server.
  void abandon(const Failure& failure);
  // Blocks until the failure has been sent to every rank, including those that join late, but for
  // at most `patience`. Returns immediately if the rendezvous is complete, or if it has not failed
  // and no rank of this process has joined it.
  void wait_until_all_know(std::chrono::milliseconds patience);

 private:
  void on_hello(RankAdmission::Pending& pending, const Hello& hello) override;
  void on_rank_frame(int rank, const Frame& frame) override;
  void on_rank_connection_ended(int rank, FrameConnection& connection) override;

  void admit(RankAdmission::Pending& pending, const Hello& hello);
  void join(RankAdmission::Pending& pending, const Hello& hello);
  void watch(int rank, const ProcessIdentity& process);
  void note_exit(int rank);
  void relay(int rank, const Frame& frame);
  [[nodiscard]] Failure as_believed(int rank, Failure failure) const;
  // Sends the ranks the decisions of the rendezvous.
  void advance();
  void end();
  void report_missing(std::chrono::milliseconds waited);
  void send_report(std::chrono::milliseconds waited);
  void retire_now();
  void close();
  void note_told(int rank);
  // Returns whether the server relays messages between ranks after initialisation.
  [[nodiscard]] bool relays() const;
  [[nodiscard]] bool all_told() const;

  EventLoop& loop_;
  const UniqueId id_;
  const ProcessIdentity self_;
  std::shared_ptr<RootServer> alive_;  // keeps the object alive from start() to close()
  ReservedPost releasing_;
  Rendezvous rendezvous_;
  RankConnections ranks_;
  RankAdmission admission_;
  FaultRelay faults_;
  StallJudge stalls_;
  std::map<int, ProcessWatch> watches_;  // of joined ranks, by rank
  std::vector<bool> told_;               // by rank: the failure has been sent
  std::vector<std::promise<void>> waiting_for_told_;
  MissingReports missing_reports_;
  LoopTimer report_;
  LoopTimer linger_;
  int own_rank_ = -1;
  bool report_armed_ = false;
  bool table_sent_ = false;
  bool ended_ = false;
  bool retired_ = false;
  bool closed_ = false;
  bool warned_unproven_ = false;
};

}  // namespace hccl::bootstrap
