// SPDX-License-Identifier: Apache-2.0
// Tests ranks that run as in containers: each in its own pid namespace, with a /dev/shm of 64 MiB,
// 8 MiB of locked memory and no CAP_SYS_PTRACE.
#include "children.h"
#include "faults.h"
#include "messages.h"
#include "rank_test.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
// LeakSanitizer needs ptrace, which these containers forbid.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming): LSan's name
extern "C" int __lsan_is_turned_off() { return 1; }
#endif

namespace hccl::test {
namespace {

void drop_ptrace() {
  require(prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE) == 0, "dropping CAP_SYS_PTRACE for programs");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  require(syscall(SYS_capget, &header, data) == 0, "reading capabilities");
  const unsigned bit = 1U << CAP_SYS_PTRACE;
  data[0].effective &= ~bit;
  data[0].permitted &= ~bit;
  data[0].inheritable &= ~bit;
  require(syscall(SYS_capset, &header, data) == 0, "dropping CAP_SYS_PTRACE");
}

// Mounts the container's file systems and sets its limits. Must run as pid 1 of the container.
void set_up_container() {
  require(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
  require(mount("proc", "/proc", "proc", 0, nullptr) == 0, "a private /proc");
  require(mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") == 0, "a small /dev/shm");
  const rlimit locked{8U << 20, 8U << 20};
  require(setrlimit(RLIMIT_MEMLOCK, &locked) == 0, "setting the limit on locked memory");
  drop_ptrace();
  require(getpid() == 1, "the first process of its namespace");
}

// Returns a rank function that runs `body` in a container. If `body` fails, the rank reports the
// failure and fails too.
RankFunction contained(const RankFunction& body) {
  return [body](World& world) {
    require(unshare(CLONE_NEWPID | CLONE_NEWNS) == 0, "new namespaces");
    const int status = status_in_child([&] {
      try {
        set_up_container();
        body(world);
        return true;
      } catch (const Failure& failure) {
        world.report(failure.what());
        return false;
      }
    });
    require_equal(status, 0, "the container's status");
  };
}

RANK_BODY(work) {
  for (const Placement placement : {Placement::device, Placement::host, Placement::mixed}) {
    for (const std::size_t count : {std::size_t{100}, std::size_t{1'000'000}}) {
      Operation operation = all_reduce_of(count);
      operation.placement = placement;
      run_and_verify(session, group, stream, operation);
    }
    Messages messages(session, group, placement);
    succeed(hcclGroupStart());
    succeed(messages.send((world.rank + 1) % world.size, 3'000'000, hcclInt8, 1, stream));
    succeed(messages.receive((world.rank + world.size - 1) % world.size, 3'000'000, hcclInt8, 1,
                             stream));
    succeed(hcclGroupEnd());
    succeed(synStreamSynchronize(stream));
    messages.verify(stream);
  }
}

void one_rank_exits(World& world) {
  const int last = world.size - 1;
  Session session(world);
  const Group group = session.join_all();
  synStreamHandle stream = session.make_stream();
  if (world.rank == last) _exit(0);
  OperationRun run(session, group, all_reduce_of(1000));
  if (run.queue(stream) == hcclSuccess) {
    expect_code(synStreamSynchronize(stream), synFailHccl);
  }
  expect_failed(group, hcclSystemError, last);
  session.finish();
}

class Containers : public testing::Test {
 protected:
  void SetUp() override {
    if (status_in_child([] { return unshare(CLONE_NEWPID | CLONE_NEWNS) == 0; }) != 0)
      GTEST_SKIP() << "needs namespaces: this container may not create them";
  }
};

std::string texts(const std::vector<RankOutcome>& outcomes) {
  std::string all = failures(outcomes);
  for (const RankOutcome& outcome : outcomes) {
    for (const std::string& report : outcome.reports) all += report + '\n';
  }
  return all;
}

TEST_F(Containers, RunCollectives) {
  const RankOptions options{.environment = {{"HCCL_DEBUG", "INFO"}}, .capture_stderr = true};
  const auto outcomes = run_ranks(4, contained(in_session(work)), options);
  EXPECT_EQ(texts(outcomes), "");
  for (const RankOutcome& outcome : outcomes) {
    EXPECT_TRUE(contains(outcome.stderr_text, "memory shared by memfd, 3 ranks in other pid"))
        << outcome.stderr_text;
  }
}

TEST_F(Containers, DetectTheDeathOfAnother) {
  EXPECT_EQ(texts(run_ranks(4, contained(one_rank_exits))), "");
}

}  // namespace
}  // namespace hccl::test
