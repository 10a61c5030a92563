// SPDX-License-Identifier: Apache-2.0
// Sandboxes and file systems that lack a system call the library would like to use: the data is
// right all the same.
#include "faults.h"
#include "system_calls.h"

#include <cerrno>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hccl::test {
namespace {

class SeekingData : public testing::TestWithParam<int> {};

// The kernel does not say where the memory files hold data and where holes.
TEST_P(SeekingData, MayBeRefusedWithoutHarm) {
  const auto reduce = [](World& world) {
    refuse_system_calls({SYS_lseek, 2, {SEEK_DATA, SEEK_HOLE}}, GetParam());
    Session session(world);
    const Group group = session.join_all();
    synStreamHandle stream = session.make_stream();
    for (const std::size_t count : {5U, 1'000U, 300'000U}) {
      for (const Placement placement : {Placement::device, Placement::host}) {
        Operation operation = all_reduce_of(count);
        operation.placement = placement;
        run_and_verify(session, group, stream, operation);
      }
    }
    session.finish();
  };
  EXPECT_EQ(failures(run_ranks(3, reduce)), "");
}

INSTANTIATE_TEST_SUITE_P(Errors, SeekingData, testing::Values(EINVAL, ENOSYS, EPERM),
                         [](const auto& of) { return strerrorname_np(of.param); });

}  // namespace
}  // namespace hccl::test
