// SPDX-License-Identifier: Apache-2.0
// Tests that process watches call back once, can be cancelled safely, and work after the control
// thread has been stopped and restarted.
#include "bootstrap/process_watch.h"

#include "base/error.h"
#include "base/peer_process.h"
#include "bootstrap/control_thread.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl::bootstrap {
namespace {

// A child that sleeps until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) pause();
    }
    process_ = open_process(pid_);
  }
  ~Sleeper() { kill(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  void kill() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] const FileDescriptor& process() const { return process_; }

 private:
  pid_t pid_;
  FileDescriptor process_;
};

bool becomes(const std::atomic<int>& value, int expected) {
  for (int i = 0; i < 10'000 && value != expected; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return value == expected;
}

TEST(ProcessWatch, CallsBackOnceOnControlThread) {
  Sleeper sleeper;
  std::atomic<int> calls{0};
  std::atomic<bool> on_control_thread{false};
  const ProcessWatch watch(sleeper.process().duplicate(), [&] {
    on_control_thread = ControlThread::instance().is_current();
    ++calls;
  });
  EXPECT_FALSE(has_exited(sleeper.process()));
  EXPECT_EQ(calls, 0);
  sleeper.kill();
  EXPECT_TRUE(becomes(calls, 1));
  EXPECT_TRUE(on_control_thread);
  EXPECT_TRUE(has_exited(sleeper.process()));
  EXPECT_FALSE(ControlThread::instance().is_current());
}

// The watch's destructor waits for a callback in progress, but must not wait for a callback that
// has thrown.
TEST(ProcessWatch, CanBeDestroyedAfterCallbackThrew) {
  Sleeper sleeper;
  std::atomic<int> calls{0};
  {
    const ProcessWatch watch(sleeper.process().duplicate(), [&] {
      ++calls;
      throw std::bad_alloc();
    });
    sleeper.kill();
    EXPECT_TRUE(becomes(calls, 1));
  }
  Sleeper another;  // the control thread must still run
  another.kill();
  const ProcessWatch watch(another.process().duplicate(), [&] { ++calls; });
  EXPECT_TRUE(becomes(calls, 2));
}

TEST(ProcessWatch, OfDeadProcessCallsBackAtOnce) {
  Sleeper sleeper;
  sleeper.kill();
  std::atomic<int> calls{0};
  const ProcessWatch watch(sleeper.process().duplicate(), [&] { ++calls; });
  EXPECT_TRUE(becomes(calls, 1));
}

TEST(ProcessWatch, NeverCallsBackAfterDestruction) {
  for (int round = 0; round < 50; ++round) {
    Sleeper sleeper;
    std::atomic<bool> destroyed{false};
    std::atomic<bool> called_late{false};
    {
      const ProcessWatch watch(sleeper.process().duplicate(), [&] {
        if (destroyed) called_late = true;
      });
      if (round % 2 == 0) sleeper.kill();
    }
    destroyed = true;
    sleeper.kill();
    EXPECT_FALSE(called_late);
  }
}

TEST(ProcessWatch, MayBeDestroyedByItsCallback) {
  Sleeper sleeper;
  std::atomic<int> calls{0};
  std::mutex mutex;
  std::unique_ptr<ProcessWatch> watch;
  {
    const std::lock_guard lock(mutex);
    watch = std::make_unique<ProcessWatch>(sleeper.process().duplicate(), [&] {
      const std::lock_guard inner(mutex);
      watch.reset();
      ++calls;
    });
  }
  sleeper.kill();
  EXPECT_TRUE(becomes(calls, 1));
}

TEST(ProcessWatch, ManyMayWatchOneProcess) {
  Sleeper sleeper;
  std::atomic<int> calls{0};
  std::vector<ProcessWatch> watches;
  watches.reserve(40);
  for (int i = 0; i < 40; ++i)
    watches.emplace_back(sleeper.process().duplicate(), [&] { ++calls; });
  watches.erase(watches.begin() + 10, watches.begin() + 20);
  sleeper.kill();
  EXPECT_TRUE(becomes(calls, 30));
}

TEST(ControlThread, ResumesAfterStop) {
  Sleeper sleeper;
  std::atomic<int> calls{0};
  const ProcessWatch watch(sleeper.process().duplicate(), [&] { ++calls; });
  ControlThread::instance().stop();
  ControlThread::instance().stop();
  sleeper.kill();
  {
    Sleeper other;
    ControlThread::instance().start();
    EXPECT_TRUE(becomes(calls, 1));
    const ProcessWatch unused(other.process().duplicate(), [] {});
    ControlThread::instance().stop();
  }
  std::atomic<int> ran{0};
  ControlThread::instance().post([&] { ++ran; });
  ControlThread::instance().start();
  EXPECT_TRUE(becomes(ran, 1));
}

TEST(ControlThread, BlocksSignalsAndSurvivesFailingTasks) {
  ControlThread& thread = ControlThread::instance();
  thread.start();
  std::atomic<int> blocked{-1};
  thread.post([] { throw Error(hcclInternalError, "a task that fails"); });
  thread.post([&] {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    blocked = sigismember(&mask, SIGUSR1) & sigismember(&mask, SIGTERM);
  });
  EXPECT_TRUE(becomes(blocked, 1));
}

}  // namespace
}  // namespace hccl::bootstrap
