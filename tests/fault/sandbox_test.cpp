// SPDX-License-Identifier: Apache-2.0
// Tests processes that lack system calls or standard streams.

#include "faults.h"
#include "rank_test.h"
#include "system_calls.h"

#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hccl::test {
namespace {

// Requires that stdin and stderr are still closed: the library must not keep descriptors 0 and 2. A
// new descriptor may briefly have one of these numbers, until the thread that opened it moves it to
// a higher number.
void require_closed(const std::string& when) {
  for (const int fd : {STDIN_FILENO, STDERR_FILENO}) {
    bool is_closed = fcntl(fd, F_GETFD) < 0;
    for (int look = 0; look < 1000 && !is_closed; ++look) {
      usleep(1000);
      is_closed = fcntl(fd, F_GETFD) < 0;
    }
    require(is_closed, join("descriptor ", fd, " was taken by ", when));
  }
}

void without_streams(World& world) {
  close(STDIN_FILENO);
  close(STDERR_FILENO);
  Session session(world);
  require_closed("synInitialize or the device");
  const Group group = session.join_all();
  require_closed("joining");
  synStreamHandle stream = session.make_stream();
  const Operation operation = all_reduce_of(70'000);
  run_and_verify(session, group, stream, operation);
  require_closed("an all-reduce");
  session.finish();
  require_closed("the end");
}

TEST(ClosedStandardStreams, StayClosed) {
  const RankOptions options{.environment = {{"HCCL_DEBUG", "TRACE"}}};
  EXPECT_EQ(failures(run_ranks(3, without_streams, options)), "");
}

// The parameter is the errno with which lseek() fails.
class SeekingData : public testing::TestWithParam<int> {};

// Results must be right even if lseek() cannot find the data and the holes in memory files.
TEST_P(SeekingData, MayBeRefused) {
  const auto refuse = [](const World&) {
    refuse_system_calls({SYS_lseek, 2, {SEEK_DATA, SEEK_HOLE}}, GetParam());
  };
  const auto reduce = [](RANK_PARAMETERS) {
    for (const std::size_t count : {5U, 1'000U, 300'000U}) {
      for (const Placement placement : {Placement::device, Placement::host}) {
        Operation operation = all_reduce_of(count);
        operation.placement = placement;
        run_and_verify(session, group, stream, operation);
      }
    }
  };
  EXPECT_EQ(failures(run_ranks(3, in_session(reduce, refuse))), "");
}

INSTANTIATE_TEST_SUITE_P(Errors, SeekingData, testing::Values(EINVAL, ENOSYS, EPERM),
                         [](const auto& of) { return strerrorname_np(of.param); });

}  // namespace
}  // namespace hccl::test
