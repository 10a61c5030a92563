// SPDX-License-Identifier: Apache-2.0
// The supervisor forks the ranks, reads their messages, and kills ranks that still run some time
// after a failure.
#include "ranks.h"

#include "check.h"
#include "free_port.h"
#include "programs/child.h"
#include "programs/pipe.h"
#include "rank_process.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl::test {
namespace {

using Clock = std::chrono::steady_clock;

class Supervisor {
 public:
  Supervisor(int size, bool threads, const RankFunction& function, const RankOptions& options)
      : size_(size),
        threads_(threads),
        function_(function),
        options_(options),
        outcomes_(static_cast<std::size_t>(size)),
        port_(options.comm_id ? free_port() : 0) {}
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  std::vector<RankOutcome> run() {
    std::fflush(nullptr);
    const int processes = threads_ ? 1 : size_;
    for (int rank = 0; rank < processes; ++rank) start(rank);
    output_.close_write();
    lifeline_.close_read();
    fcntl(output_.read_end(), F_SETFL, O_NONBLOCK);
    start_ = Clock::now();
    std::thread companion;
    if (options_.meanwhile) companion = std::thread([this] { options_.meanwhile(pids_); });
    while (alive_ > 0) {
      watch();
      std::this_thread::sleep_for(std::chrono::microseconds(kill_pending() ? 100 : 1000));
    }
    if (companion.joinable()) companion.join();
    lifeline_.close_write();
    drain();
    output_.close_read();
    collect_stderr();
    return outcomes_;
  }

 private:
  struct Child {
    pid_t pid;
    int rank;
    bool alive;
    FILE* stderr_file;
  };

  void start(int rank) {
    FILE* errors = options_.capture_stderr ? std::tmpfile() : nullptr;
    static_cast<void>(test_seed());  // ranks inherit the seed, but not the variable
    const pid_t pid = hccl_perf::fork_child();
    if (pid < 0) throw Failure("cannot fork");
    if (pid == 0) be_child(rank, errors);
    children_.push_back({pid, rank, true, errors});
    pids_.push_back(pid);
    ++alive_;
  }

  [[noreturn]] void be_child(int rank, FILE* errors) {
    output_.close_read();
    lifeline_.close_write();
    if (errors != nullptr) dup2(fileno(errors), STDERR_FILENO);
    set_environment(options_, port_, rank);
    set_rank_of_seed(rank);
    const int patience = sanitized() ? 5 * options_.seconds : options_.seconds;
    alarm(static_cast<unsigned>(patience));
    World world{.rank = rank,
                .size = size_,
                .threads = threads_,
                .board = &*board_,
                .output = output_.write_end(),
                .lifeline = lifeline_.read_end()};
    const bool good = threads_ ? run_threads(world, function_) : run_one(world, function_);
    std::exit(good ? 0 : 1);  // runs static destructors, as at the end of a program
  }

  // Reads messages and reaps children that have ended. Kills the victim after kill_after_us, and
  // all remaining children some time after a failure.
  void watch() {
    if (kill_pending() &&
        Clock::now() - start_ >= std::chrono::microseconds(options_.kill_after_us)) {
      kill(pids_.at(static_cast<std::size_t>(options_.victim)), SIGKILL);
      killed_ = true;
    }
    drain();
    for (Child& child : children_) {
      int status = 0;
      if (!child.alive || waitpid(child.pid, &status, WNOHANG) != child.pid) continue;
      child.alive = false;
      --alive_;
      drain();
      note_end(child, status);
    }
    if (failed_ && Clock::now() - failed_at_ > std::chrono::seconds(sanitized() ? 60 : 15)) {
      for (const Child& child : children_) {
        if (child.alive) kill(child.pid, SIGKILL);
      }
    }
  }

  [[nodiscard]] bool kill_pending() const { return options_.kill_after_us >= 0 && !killed_; }

  void note_failure() {
    if (!failed_) failed_at_ = Clock::now();
    failed_ = true;
  }

  void note_end(const Child& child, int status) {
    const int last = threads_ ? size_ - 1 : child.rank;
    for (int rank = child.rank; rank <= last; ++rank) {
      RankOutcome& outcome = outcomes_.at(static_cast<std::size_t>(rank));
      if (WIFSIGNALED(status)) {
        outcome.signal = WTERMSIG(status);
        const char* hint = outcome.signal == SIGALRM ? " (it hung)" : "";
        if (outcome.failure.empty())
          outcome.failure = join("ended by signal ", outcome.signal, hint);
      } else if (WEXITSTATUS(status) != 0 && outcome.failure.empty()) {
        outcome.failure = join("exit status ", WEXITSTATUS(status));
      } else if (!outcome.finished && outcome.failure.empty()) {
        outcome.failure = "exited early";
      }
    }
    if (status != 0 && child.rank != options_.victim) note_failure();
  }

  void drain() {
    std::array<char, 65536> chunk{};
    for (;;) {
      const ssize_t length = read(output_.read_end(), chunk.data(), chunk.size());
      if (length <= 0) break;
      pending_.append(chunk.data(), static_cast<std::size_t>(length));
    }
    Header header{};
    while (pending_.size() >= sizeof(header)) {
      std::memcpy(&header, pending_.data(), sizeof(header));
      if (pending_.size() < sizeof(header) + header.length) break;
      take(header, pending_.substr(sizeof(header), header.length));
      pending_.erase(0, sizeof(header) + header.length);
    }
  }

  void take(const Header& header, const std::string& text) {
    RankOutcome& outcome = outcomes_.at(static_cast<std::size_t>(header.rank));
    if (header.kind == Kind::report) outcome.reports.push_back(text);
    if (header.kind == Kind::finished) outcome.finished = true;
    if (header.kind == Kind::failure) {
      outcome.failure = text;
      note_failure();
    }
  }

  void collect_stderr() {
    for (const Child& child : children_) {
      if (child.stderr_file == nullptr) continue;
      std::rewind(child.stderr_file);
      std::string& text = outcomes_.at(static_cast<std::size_t>(child.rank)).stderr_text;
      std::array<char, 4096> chunk{};
      while (const std::size_t length =
                 std::fread(chunk.data(), 1, chunk.size(), child.stderr_file)) {
        text.append(chunk.data(), length);
      }
      std::fclose(child.stderr_file);
    }
  }

  int size_;
  bool threads_;
  const RankFunction& function_;
  const RankOptions& options_;
  std::vector<RankOutcome> outcomes_;
  hccl_perf::Shared<Board> board_;
  int port_;
  hccl_perf::Pipe output_;
  hccl_perf::Pipe lifeline_;
  std::vector<Child> children_;
  std::vector<pid_t> pids_;
  int alive_ = 0;
  std::string pending_;
  Clock::time_point start_;
  bool killed_ = false;
  bool failed_ = false;
  Clock::time_point failed_at_;
};

}  // namespace

std::vector<RankOutcome> run_ranks(int size, const RankFunction& function,
                                   const RankOptions& options) {
  return Supervisor(size, false, function, options).run();
}

std::vector<RankOutcome> run_ranks_as_threads(int size, const RankFunction& function,
                                              const RankOptions& options) {
  return Supervisor(size, true, function, options).run();
}

}  // namespace hccl::test
