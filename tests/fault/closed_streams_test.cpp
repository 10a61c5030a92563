// SPDX-License-Identifier: Apache-2.0
// A program may run without standard streams: nothing of the library gets their numbers, and no log
// line goes to whatever has them.
#include "faults.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl::test {
namespace {

void require_closed(const std::string& when) {
  for (const int fd : {STDIN_FILENO, STDERR_FILENO}) {
    require(fcntl(fd, F_GETFD) < 0, join("descriptor ", fd, " was taken by ", when));
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

TEST(ClosedStreams, StayClosed) {
  const RankOptions options{.environment = {{"HCCL_DEBUG", "TRACE"}}};
  EXPECT_EQ(failures(run_ranks(3, without_streams, options)), "");
}

}  // namespace
}  // namespace hccl::test
