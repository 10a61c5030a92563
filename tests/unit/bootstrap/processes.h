// SPDX-License-Identifier: Apache-2.0
// Forked processes for tests. A test must not use the library before it forks a process. The
// processes report through shared memory, and end with the test.
#pragma once

#include "base/error.h"
#include "base/peer_process.h"
#include "free_port.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Skips the current test if ranks on one host cannot join over a unix socket.
#define SKIP_WITHOUT_PEER_PIDFDS() \
  if (!has_peer_pidfds()) GTEST_SKIP() << "needs pidfds of peers: Linux 6.5"

namespace hccl::bootstrap::test {

using hccl::test::free_port;

// The shared memory in which a process reports to the test and to the other processes.
struct Report {
  std::atomic<int> stage{0};  // defined by the test
  std::atomic<bool> done{false};
  int code = 0;
  char text[2000] = {};
};

struct Board {
  hcclUniqueId id{};
  std::atomic<bool> has_id{false};
  std::atomic<int> stage{0};
  Report reports[32];
};

// Waits up to half a minute for the condition. Returns true if the condition holds.
inline bool wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < 15'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

class Processes {
 public:
  Processes() {
    void* const page =
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board_ = new (page) Board;
    if (pipe(leash_) != 0) std::abort();
  }
  ~Processes() {
    for (const auto& [index, pid] : pids_) ::kill(pid, SIGKILL);
    for (const auto& [index, pid] : pids_) waitpid(pid, nullptr, 0);
    close(leash_[0]);
    close(leash_[1]);
    munmap(board_, sizeof(Board));
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // Starts a child that sets these environment variables, runs `body` and exits.
  void start(int index, const std::map<std::string, std::string>& environment,
             const std::function<void(Report&)>& body) {
    Report& report = *new (&board_->reports[index]) Report;
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      close(leash_[1]);
      for (const char* name : {"HCCL_COMM_ID", "HCCL_SECRET", "HCCL_SECRET_FILE", "HCCL_NODE_ID"})
        unsetenv(name);
      setenv("HCCL_SOCKET_IFNAME", "lo", 1);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      body(report);
      report.done = true;
      exit(0);
    }
    pids_[index] = pid;
  }

  void kill(int index) { ::kill(pids_.at(index), SIGKILL); }
  [[nodiscard]] int pid(int index) const { return pids_.at(index); }
  // Waits up to half a minute for a process to exit. Returns whether its exit status is 0.
  bool finished(int index) {
    int status = -1;
    const bool gone =
        wait_until([&] { return waitpid(pids_.at(index), &status, WNOHANG) == pids_.at(index); });
    if (gone) pids_.erase(index);
    return gone && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  // Forks a process that lives until the test ends. Must be called in a child. If `raw`, no fork
  // handlers run, so the new process keeps every descriptor.
  void leave_child(bool raw) {
    const auto pid = raw ? static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) : fork();
    if (pid != 0) return;
    char byte = 0;
    while (read(leash_[0], &byte, 1) > 0) {
    }
    _exit(0);
  }

  // Expects that the process exits with status 0, and has reported `code` and a text that contains
  // `part`.
  void expect_reported(int index, int code, const std::string& part) {
    EXPECT_TRUE(!pids_.contains(index) || finished(index)) << index;
    EXPECT_EQ(report(index).code, code) << text(index);
    EXPECT_NE(text(index).find(part), std::string::npos) << text(index);
  }

  [[nodiscard]] Board& board() { return *board_; }
  [[nodiscard]] Report& report(int index) { return board_->reports[index]; }
  [[nodiscard]] std::string text(int index) const { return board_->reports[index].text; }

 private:
  Board* board_ = nullptr;
  int leash_[2] = {-1, -1};
  std::map<int, pid_t> pids_;
};

constexpr uid_t kOtherUser = 65534;

// Makes the calling child run as another user. Requires root.
inline void become_another_user() {
  const bool changed = setresgid(kOtherUser, kOtherUser, kOtherUser) == 0 &&
                       setresuid(kOtherUser, kOtherUser, kOtherUser) == 0;
  if (!changed) _exit(1);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of user clears this setting
}

inline void write_report(Report& report, int code, const std::string& text) {
  report.code = code;
  std::strncpy(report.text, text.c_str(), sizeof(report.text) - 1);
}

// Runs `function`, and reports the Error that it throws, if any.
inline void report_error(Report& report, const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    write_report(report, error.code(), error.what());
  }
}

}  // namespace hccl::bootstrap::test
