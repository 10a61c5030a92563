// SPDX-License-Identifier: Apache-2.0
// Tests the control thread while its process exits or forks. Only the test's children start the
// thread.
#include "bootstrap/control_thread.h"

#include "base/error.h"
#include "base/peer_process.h"
#include "bootstrap/process_watch.h"
#include "bootstrap/server_registry.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
// The leak detector would wait forever in a child that was forked while the control thread held the
// allocator's lock, because no thread of the child releases that lock.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming): its name
extern "C" int __lsan_is_turned_off() { return 1; }
#endif

namespace hccl::bootstrap {
namespace {

// Runs the function in a child. Returns the child's wait status, which is 0 if the function
// returned.
template <class Function>
int status_of(const Function& function) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      function();
    } catch (const std::exception& error) {
      std::fputs(error.what(), stderr);
      _exit(9);
    }
    exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

ProcessWatch& static_watch() {
  static ProcessWatch watch;  // destroyed at exit
  return watch;
}

TEST(ControlThread, DoesNotDelayExit) {
  const int status = status_of([] {
    static_watch();
    const FileDescriptor self = open_process(getppid());
    static_watch() = ProcessWatch(self.duplicate(), [] {});
    std::atexit([] {  // runs first, while the control thread is alive
      ControlThread::instance().post([] { pause(); });
    });
  });
  EXPECT_EQ(status, 0);
}

TEST(ControlThread, CallsDuringExitAreSafe) {
  const int status = status_of([] {
    std::atexit([] {  // registered first, so it runs last
      ControlThread::instance().post([] {});
      ControlThread::instance().stop();
      try {
        static_cast<void>(create_unique_id());
        _exit(3);
      } catch (const Error& error) {
        _exit(error.code() == hcclInvalidUsage ? 0 : 4);
      }
    });
    ControlThread::instance().start();
  });
  EXPECT_EQ(status, 0);
}

TEST(ControlThread, DoesNotStartInForkedChild) {
  const int status = status_of([] {
    ControlThread::instance().start();
    static ProcessWatch watch(open_process(getppid()), [] {});
    const int inner = status_of([] {
      try {
        ControlThread::instance().start();
        _exit(3);
      } catch (const Error& error) {
        if (error.code() != hcclInvalidUsage) _exit(4);
      }
      watch = ProcessWatch();
      ControlThread::instance().stop();
    });
    if (inner != 0) _exit(5);
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hccl::bootstrap
