// SPDX-License-Identifier: Apache-2.0
// Tests the control thread and its process watches, which call back once, can be cancelled safely,
// and start the thread again after it has rested.
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

TEST(ProcessWatch, TellsOnceFromTheControlThread) {
  Sleeper sleeper;
  std::atomic<int> told{0};
  std::atomic<bool> on_control_thread{false};
  const ProcessWatch watch(sleeper.process().duplicate(), [&] {
    on_control_thread = ControlThread::instance().is_current();
    ++told;
  });
  EXPECT_FALSE(has_exited(sleeper.process()));
  EXPECT_EQ(told, 0);
  sleeper.kill();
  EXPECT_TRUE(becomes(told, 1));
  EXPECT_TRUE(on_control_thread);
  EXPECT_TRUE(has_exited(sleeper.process()));
  EXPECT_FALSE(ControlThread::instance().is_current());
}

// The end of the watch waits for a callback in progress, and must know that the failed one has
// ended.
TEST(ProcessWatch, WhoseCallbackFailedCanBeEnded) {
  Sleeper sleeper;
  std::atomic<int> told{0};
  {
    const ProcessWatch watch(sleeper.process().duplicate(), [&] {
      ++told;
      throw std::bad_alloc();
    });
    sleeper.kill();
    EXPECT_TRUE(becomes(told, 1));
  }
  Sleeper another;  // the thread must go on
  another.kill();
  const ProcessWatch watch(another.process().duplicate(), [&] { ++told; });
  EXPECT_TRUE(becomes(told, 2));
}

TEST(ProcessWatch, OfADeadProcessTellsAtOnce) {
  Sleeper sleeper;
  sleeper.kill();
  std::atomic<int> told{0};
  const ProcessWatch watch(sleeper.process().duplicate(), [&] { ++told; });
  EXPECT_TRUE(becomes(told, 1));
}

TEST(ProcessWatch, IsSilentOnceDestroyed) {
  for (int round = 0; round < 50; ++round) {
    Sleeper sleeper;
    std::atomic<bool> destroyed{false};
    std::atomic<bool> told_late{false};
    {
      const ProcessWatch watch(sleeper.process().duplicate(), [&] {
        if (destroyed) told_late = true;
      });
      if (round % 2 == 0) sleeper.kill();
    }
    destroyed = true;
    sleeper.kill();
    EXPECT_FALSE(told_late);
  }
}

TEST(ProcessWatch, MayBeDestroyedByItsCallback) {
  Sleeper sleeper;
  std::atomic<int> told{0};
  std::mutex mutex;
  std::unique_ptr<ProcessWatch> watch;
  {
    const std::lock_guard lock(mutex);
    watch = std::make_unique<ProcessWatch>(sleeper.process().duplicate(), [&] {
      const std::lock_guard inner(mutex);
      watch.reset();
      ++told;
    });
  }
  sleeper.kill();
  EXPECT_TRUE(becomes(told, 1));
}

TEST(ProcessWatch, ManyOfOneProcess) {
  Sleeper sleeper;
  std::atomic<int> told{0};
  std::vector<ProcessWatch> watches;
  watches.reserve(40);
  for (int i = 0; i < 40; ++i) watches.emplace_back(sleeper.process().duplicate(), [&] { ++told; });
  watches.erase(watches.begin() + 10, watches.begin() + 20);
  sleeper.kill();
  EXPECT_TRUE(becomes(told, 30));
}

TEST(ControlThread, RestsWhileStoppedAndGoesOn) {
  Sleeper sleeper;
  std::atomic<int> told{0};
  const ProcessWatch watch(sleeper.process().duplicate(), [&] { ++told; });
  ControlThread::instance().stop();
  ControlThread::instance().stop();
  sleeper.kill();
  {
    Sleeper other;
    ControlThread::instance().start();
    EXPECT_TRUE(becomes(told, 1));
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
