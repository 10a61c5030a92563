// SPDX-License-Identifier: Apache-2.0
// The server of one unique id: lets ranks in over TCP, tells them of each other and of each other's
// death.
#pragma once

#include "base/deadline.h"
#include "base/rejection_log.h"
#include "bootstrap/acceptor.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/missing_reports.h"
#include "bootstrap/process_watch.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/session.h"
#include "bootstrap/unique_id.h"
#include "bootstrap/wait_for_graph.h"

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hccl::bootstrap {

// Lives on the control thread, which calls on_frame and on_closed; the other public members may be
// called from any thread.
class RootServer final : public std::enable_shared_from_this<RootServer>, public Session::Owner {
 public:
  // `key` is what ranks must prove to know; empty lets everybody in. A connection has `hello_limit`
  // to say a valid hello.
  RootServer(UniqueId id, FileDescriptor listener, Bytes key,
             std::chrono::milliseconds hello_limit = std::chrono::seconds(5));
  ~RootServer() override;

  void start();
  // Closes everything now.
  void stop();
  // Closes once the rendezvous that has begun has ended, for ranks may still be on their way.
  void retire();
  // Fails the rendezvous that has begun, else closes: a rank that it waits for will not come.
  void abandon(const Failure& failure);
  // Waits until every rank has heard of the failure, those included that come late; at most
  // `patience`. Does not wait if there is no failure or nobody is missing.
  void wait_until_all_know(std::chrono::milliseconds patience);

  void on_frame(Session& session, const Frame& frame) override;
  void on_closed(Session& session, const std::string& why) override;
  void on_forged(Session& session) override;

 private:
  struct Io;
  using SessionPointer = std::shared_ptr<Session>;

  // root_server_admission.cpp
  void take_connection(FileDescriptor socket, const Address& peer);
  void cut_off(const FileDescriptor& socket, const Address& peer, const char* why);
  void on_opening(Session& session, const Frame& frame);
  void add_session(FileDescriptor socket, const Address& peer, Bytes heard);
  bool make_room();
  void on_hello(Session& session, const Frame& frame);
  [[nodiscard]] std::string wrong_user(const Session& session) const;
  [[nodiscard]] Failure as_believed(const Session& session, Failure failure) const;
  void refuse(Session& session, Refusal::Reason reason, const std::string& why);
  void drop(Session& session, const std::string& why);
  void reject(const Session& session, const std::string& why);
  void report_stranger(const Address& peer, const std::string& why);
  void forget(const Session& session);

  // root_server.cpp
  void seat(Session& session, const Hello& hello);
  void watch(int rank, const ProcessIdentity& process);
  void note_exit(int rank);
  void on_joined_frame(Session& session, const Frame& frame);
  void settle();
  void end();
  void report_missing(std::chrono::milliseconds waited);
  void tell_missing(std::chrono::milliseconds waited);
  void retire_now();
  void close();
  void broadcast(FrameType type, const Bytes& payload);
  void note_told(int rank);
  [[nodiscard]] bool all_told() const;

  // root_server_relay.cpp: after initialisation over several nodes
  [[nodiscard]] bool relays() const;
  void relay(Session& session, const Frame& frame);
  void on_rank_left(const Session& session, const std::string& why);
  void report_lost();
  void spread(const Failure& failure);

  // root_server_inquiry.cpp: ranks that have waited for long ask who is missing
  void on_stuck(const Session& session, Waiting waiting);
  void on_answer(const Session& session, Waiting waiting);
  void judge_after(std::chrono::milliseconds delay);
  void judge();

  UniqueId id_;
  Bytes key_;
  std::chrono::milliseconds hello_limit_;
  ProcessIdentity self_;
  MissingReports missing_reports_;
  std::shared_ptr<Acceptor> acceptor_;
  std::unique_ptr<Io> io_;
  std::shared_ptr<RootServer> alive_;  // from start to close, whoever else forgets it
  ReservedPost releasing_;
  Rendezvous rendezvous_;
  std::vector<SessionPointer> sessions_;  // in order of arrival
  RejectionLog rejections_{"bootstrap"};
  std::map<int, ProcessWatch> watches_;  // of joined ranks, by rank
  std::vector<bool> told_;               // by rank: knows of the failure
  std::vector<std::promise<void>> waiting_for_told_;
  int own_rank_ = -1;
  bool report_armed_ = false;
  bool table_sent_ = false;
  bool ended_ = false;
  bool retired_ = false;
  bool closed_ = false;
  std::vector<int> lost_;  // ranks whose end is about to be told
  std::string why_lost_;
  bool fault_spread_ = false;
  std::set<int> departed_;
  std::set<int> askers_;  // while there is one, answers are collected
  WaitForGraph waiting_;
  std::set<int> answered_;  // ranks that have said all that one of their calls has to say
  std::string suspected_;   // a deadlock that may still resolve itself
  Deadline suspected_until_ = Deadline::never();  // then it is a mismatch
  bool warned_unproven_ = false;
};

}  // namespace hccl::bootstrap
