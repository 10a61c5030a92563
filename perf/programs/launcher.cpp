// SPDX-License-Identifier: Apache-2.0
// Starts and supervises child processes.
#include "launcher.h"

#include "child.h"
#include "launch_environment.h"
#include "quantities.h"
#include "report_error.h"
#include "text.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <vector>

#include <signal.h>
#include <sys/wait.h>

namespace hccl_perf {
namespace {

using Clock = std::chrono::steady_clock;

// After a failure, processes that have not ended within this time are killed.
constexpr auto kGrace = std::chrono::milliseconds(800);

// Returns the number of processes that the kernel's OOM killer has killed since boot, or -1 if that
// number is unknown.
long out_of_memory_kills() {
  std::ifstream file("/proc/vmstat");
  std::string name;
  long count = 0;
  while (file >> name >> count) {
    if (name == "oom_kill") return count;
  }
  return -1;
}

Board* board_of_process_0 = nullptr;

// Handles SIGPIPE in process 0, which gets it if the reader of the table, such as head, has exited.
// Keeps the other ranks from reporting the end of process 0 as a failure.
void end_unread(int signal) {
  for (int rank = 0; rank < board_of_process_0->ranks(); ++rank)
    board_of_process_0->record(rank).reported = true;
  std::signal(signal, SIG_DFL);
  raise(signal);
}

class Supervisor {
 public:
  Supervisor(const LaunchPlan& plan, Board& board) : plan_(plan), board_(board) {
    sigset_t child_ended;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ended, &previous_mask_);
  }
  ~Supervisor() {
    kill_running();
    sigprocmask(SIG_SETMASK, &previous_mask_, nullptr);
  }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  void start(const std::function<int(const ChildLinks&)>& child);
  [[nodiscard]] int supervise();

 private:
  [[noreturn]] void run_child(int process, const std::function<int(const ChildLinks&)>& child);
  void wait_for_change();
  void reap();
  void handle_end(int process, pid_t pid, int status);
  void end_quietly();
  void fail(const std::string& failure, bool reports);
  void check_timeout();
  void check_grace();
  void kill_running();
  void note_status(int status);
  [[nodiscard]] std::vector<int> ranks_of(int process) const;
  [[nodiscard]] bool all_of(int process, std::atomic<bool> RankRecord::*flag) const;
  [[nodiscard]] std::string name_of(int process, pid_t pid) const;

  const LaunchPlan& plan_;
  Board& board_;
  sigset_t previous_mask_{};
  Pipe notice_;
  Pipe id_;
  std::map<pid_t, int> running_;  // process number by pid
  long oom_kills_at_start_ = out_of_memory_kills();
  Clock::time_point started_ = Clock::now();
  bool failed_ = false;
  Clock::time_point failed_at_;
  int exit_status_ = 0;
};

void Supervisor::run_child(int process, const std::function<int(const ChildLinks&)>& child) {
  sigprocmask(SIG_SETMASK, &previous_mask_, nullptr);
  notice_.close_write();
  // Only process 0 may hold the write end, so that processes waiting for the id get an end of file
  // if process 0 ends.
  if (process == 0) {
    id_.close_read();
    board_of_process_0 = &board_;
    std::signal(SIGPIPE, end_unread);
  } else {
    id_.close_write();
  }
  // If all ranks are on this machine, use loopback, unless the user has chosen a network.
  const bool all_here = plan_.processes * plan_.threads == board_.ranks();
  if (all_here && value_of(&std::getenv, "HCCL_SOCKET_IFNAME") == nullptr)
    setenv("HCCL_SOCKET_IFNAME", "lo", 1);
  if (plan_.nodes > 1) {
    const int node = node_of_process(process, plan_.processes, plan_.nodes);
    setenv("HCCL_NODE_ID", text("node", node).c_str(), 1);
  }
  const int status = child({process, notice_.read_end(), &id_});
  std::fflush(stdout);
  std::_Exit(status);
}

void Supervisor::start(const std::function<int(const ChildLinks&)>& child) {
  std::fflush(stdout);
  for (int process = 0; process < plan_.processes; ++process) {
    const pid_t pid = fork_child();
    if (pid == 0) run_child(process, child);
    if (pid < 0) {
      throw RunError(text("cannot start process ", process, " (of 0 to ", plan_.processes - 1,
                          "): ", std::strerror(errno),
                          "; raise ulimit -u, or start fewer processes"));
    }
    running_[pid] = process;
    for (const int rank : ranks_of(process)) board_.record(rank).pid = pid;
  }
  notice_.close_read();
  id_.close_read();
  id_.close_write();
}

int Supervisor::supervise() {
  while (!running_.empty()) {
    reap();
    check_grace();
    check_timeout();
    if (!running_.empty()) wait_for_change();
  }
  return exit_status_;
}

// Blocks until a child ends or a deadline has passed, but for at most 60 s.
void Supervisor::wait_for_change() {
  auto due = Clock::now() + std::chrono::seconds(60);
  if (failed_) due = std::min(due, failed_at_ + kGrace);
  if (!failed_ && plan_.timeout > 0) {
    due = std::min(due, started_ + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(plan_.timeout)));
  }
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(due - Clock::now());
  const long nanoseconds = std::max<long>(left.count(), 1'000'000);
  const timespec wait{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  sigtimedwait(&child_ended, nullptr, &wait);
}

void Supervisor::reap() {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    const auto child = running_.find(pid);
    if (child == running_.end()) continue;
    const int process = child->second;
    running_.erase(child);
    handle_end(process, pid, status);
  }
}

void Supervisor::handle_end(int process, pid_t pid, int status) {
  const bool finished = all_of(process, &RankRecord::finished);
  if (WIFEXITED(status) && finished) {
    note_status(WEXITSTATUS(status));
    return;
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGPIPE && process == 0) return end_quietly();
    const bool out_of_memory = signal == SIGKILL && out_of_memory_kills() > oom_kills_at_start_;
    fail(text(name_of(process, pid), " was killed by signal ", signal, " (", strsignal(signal), ")",
              out_of_memory ? ", probably because memory ran out" : ""),
         true);
  } else {
    const bool reported = all_of(process, &RankRecord::reported);
    fail(text(name_of(process, pid), " exited with status ", WEXITSTATUS(status),
              " before the end of the run"),
         !reported);
  }
}

// Ends all processes without a message, as is usual for programs whose reader has exited.
void Supervisor::end_quietly() {
  kill_running();
  exit_status_ = 128 + SIGPIPE;
}

// Handles a failure. If it is the first, notifies the other processes and starts the grace period.
void Supervisor::fail(const std::string& failure, bool reports) {
  note_status(EXIT_FAILURE);
  if (failed_) return;
  failed_ = true;
  failed_at_ = Clock::now();
  board_.publish_failure(failure);
  if (reports) report_error(failure);
  notice_.close_write();
}

void Supervisor::check_timeout() {
  if (failed_ || plan_.timeout <= 0) return;
  if (Clock::now() - started_ < std::chrono::duration<double>(plan_.timeout)) return;
  std::string missing;
  for (int rank = 0; rank < board_.ranks(); ++rank) {
    if (!board_.record(rank).finished)
      missing += text(missing.empty() ? "" : "; ", board_.describe(rank));
  }
  report_error(text("the run has not finished after ", plan_.timeout, " s (-T): ", missing));
  failed_ = true;
  exit_status_ = 1;
  kill_running();
}

void Supervisor::check_grace() {
  if (!failed_ || Clock::now() - failed_at_ < kGrace || running_.empty()) return;
  for (const auto& [pid, process] : running_) {
    report_error(text(name_of(process, pid), " did not end after the failure; killing it"));
  }
  kill_running();
}

void Supervisor::kill_running() {
  for (const auto& [pid, process] : running_) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  running_.clear();
}

// Merges a child's exit status into the run's. EXIT_FAILURE takes precedence.
void Supervisor::note_status(int status) {
  if (exit_status_ != EXIT_FAILURE && status != 0) exit_status_ = status;
}

std::vector<int> Supervisor::ranks_of(int process) const {
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(plan_.threads));
  for (int i = 0; i < plan_.threads; ++i)
    ranks.push_back(plan_.first_rank + process * plan_.threads + i);
  return ranks;
}

bool Supervisor::all_of(int process, std::atomic<bool> RankRecord::*flag) const {
  const std::vector<int> ranks = ranks_of(process);
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return (board_.record(rank).*flag).load(); });
}

std::string Supervisor::name_of(int process, pid_t pid) const {
  return text(plan_.threads > 1 ? "ranks " : "rank ", format_ranks(ranks_of(process)), " (pid ",
              pid, ")");
}

}  // namespace

int launch(const LaunchPlan& plan, Board& board,
           const std::function<int(const ChildLinks&)>& child) {
  Supervisor supervisor(plan, board);
  supervisor.start(child);
  return supervisor.supervise();
}

}  // namespace hccl_perf
