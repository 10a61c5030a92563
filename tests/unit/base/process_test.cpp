// SPDX-License-Identifier: Apache-2.0
// Tests the fork guard, and the identities of host and node.
#include "base/process.h"

#include "base/config.h"
#include "base/text.h"
#include "children.h"
#include "scoped_environment.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl {
namespace {

TEST(ForkGuard, DetectsForkedChild) {
  EXPECT_EQ(test::status_in_child([] { return !is_forked_child(); }), 0)
      << "forked before the guard was installed";
  install_fork_guard();
  install_fork_guard();
  EXPECT_FALSE(is_forked_child());
  EXPECT_EQ(test::status_in_child(is_forked_child), 0);
  EXPECT_FALSE(is_forked_child());
}

std::vector<std::string> seen_at_fork;

void note(const char* what) { seen_at_fork.emplace_back(what); }

// The guard's handlers must be registered at load time, before the program's handlers.
TEST(ForkGuard, RunsInsideProgramsHandlers) {
  ASSERT_EQ(pthread_atfork([] { note("program prepares"); }, [] { note("program in parent"); },
                           [] { note("program in child"); }),
            0);
  install_fork_guard();
  static constexpr ForkHooks kHooks{[]() noexcept { note("library prepares"); },
                                    []() noexcept { note("library in parent"); },
                                    []() noexcept { note("library in child"); }};
  set_fork_hooks(kHooks);
  seen_at_fork.clear();
  using Order = std::vector<std::string>;
  const Order in_child{"program prepares", "library prepares", "library in child",
                       "program in child"};
  EXPECT_EQ(test::status_in_child([&] { return seen_at_fork == in_child; }), 0);
  EXPECT_EQ(seen_at_fork, (Order{"program prepares", "library prepares", "library in parent",
                                 "program in parent"}));
}

// A pending cancellation must not take effect inside the fork hooks.
TEST(ForkGuard, HooksAreNotCancelled) {
  static constexpr ForkHooks kHooks{[]() noexcept { pthread_testcancel(); },
                                    []() noexcept { pthread_testcancel(); },
                                    []() noexcept { pthread_testcancel(); }};
  set_fork_hooks(kHooks);
  install_fork_guard();
  static pid_t child = -1;
  std::thread forking([] {
    pthread_cancel(pthread_self());
    child = fork();
    int state = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    if (child == 0) _exit(state == PTHREAD_CANCEL_ENABLE ? 0 : 1);
    EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
  });
  forking.join();
  EXPECT_EQ(test::status_of(child), 0);
}

TEST(NodeIdentity, NamesUserMachineAndNetwork) {
  test::ScopedEnvironment environment;
  environment.remove("HCCL_NODE_ID");
  load_config();
  const std::string node = node_identity();
  EXPECT_EQ(node.find(text("uid ", geteuid(), " boot ")), 0U) << node;
  EXPECT_NE(node.find(" net "), std::string::npos) << node;
  EXPECT_EQ(node, node_identity());
}

TEST(NodeIdentity, NodeIdReplacesMachine) {
  const test::ScopedEnvironment environment("HCCL_NODE_ID", "left");
  load_config();
  EXPECT_EQ(node_identity(), text("uid ", geteuid(), " node left"));
}

TEST(HostName, IsNotEmpty) { EXPECT_FALSE(host_name().empty()); }

TEST(IsStopped, DistinguishesStoppedFromDead) {
  const pid_t child = test::start_child([] {
    prctl(PR_SET_NAME, "a) R (b");
    return raise(SIGSTOP);
  });
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(is_stopped(child));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(is_stopped(child));
}

}  // namespace
}  // namespace hccl
