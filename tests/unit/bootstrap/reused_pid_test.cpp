// SPDX-License-Identifier: Apache-2.0
// The pid of a socket's peer may belong to another process by the time it is looked up.
#include "base/abstract_socket.h"
#include "base/file_descriptor.h"
#include "base/peer_process.h"
#include "base/text.h"
#include "processes.h"

#include <cerrno>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl::test {
namespace {

// A process with the pid `wanted`, which sleeps until the object is destroyed.
class Sleeper {
 public:
  explicit Sleeper(pid_t wanted) {
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<std::uintptr_t>(&wanted);
    arguments.set_tid_size = 1;
    pid_ = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) pause();
  }
  ~Sleeper() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

class ReusedPid : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    SKIP_WITHOUT_PEER_PIDFDS();
  }
  // A child calls listen() on the socket, and exits. Returns its pid. No fork handlers run, which
  // could close the child's descriptors.
  pid_t listen_in_child() const {
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) _exit(listen(socket_.get(), 1) == 0 ? 0 : 1);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    return child;
  }
  [[nodiscard]] FileDescriptor connect_to_it() const {
    FileDescriptor result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect_to_abstract(result, name_), 0);
    return result;
  }

  const std::string name_ = text("hccl-test-", getpid());
  FileDescriptor socket_ = try_listen_on_abstract(name_);
};

TEST_F(ReusedPid, OfPeerThatHasExitedProvesNothing) {
  EXPECT_EQ(peer_may_be_inspected(connect_to_it().get()), true) << "this process listens";
  const pid_t listener = listen_in_child();
  const FileDescriptor connection = connect_to_it();
  EXPECT_EQ(peer_may_be_inspected(connection.get()), false);
  const Sleeper innocent(listener);
  if (innocent.pid() < 0 && (errno == EPERM || errno == ENOSYS))
    GTEST_SKIP() << "needs namespaces: clone3() may not choose a pid";
  ASSERT_EQ(innocent.pid(), listener) << "another process has got the pid: " << errno;
  EXPECT_EQ(peer_credentials(connection.get()).value_or(ucred{}).pid, innocent.pid());
  EXPECT_EQ(peer_may_be_inspected(connection.get()), false);
}

}  // namespace
}  // namespace hccl::test
