// SPDX-License-Identifier: Apache-2.0
// Tests that a failed copy fails the work queued behind it. A collective or a message among that
// work must fail the communicator on every rank.
#include "faults.h"
#include "rank_test.h"
#include "system_calls.h"

#include <cerrno>

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace hccl::test {
namespace {

constexpr std::size_t kCopiedCount = 5'000;

// A rank with two streams and a buffer of floats that all equal 2.
class Fixture {
 public:
  Fixture(Session& of_rank, const Group& of_all, synStreamHandle stream)
      : session(of_rank),
        group(of_all),
        first(stream),
        second(session.make_stream()),
        memory_(session.device(), kCopiedCount * sizeof(float)),
        before_(kCopiedCount, 2.0F) {
    succeed(synMemCopyAsync(first, host_address(before_.data()), memory_.size(), memory_.address(),
                            HOST_TO_DRAM));
    succeed(synStreamSynchronize(first));
  }

  void copy_from(std::uint64_t host) const {
    succeed(synMemCopyAsync(first, host, memory_.size(), memory_.address(), HOST_TO_DRAM));
  }
  // Queues an all-reduce. Rank 0 queues its call last. Otherwise, its failure could reach the other
  // ranks before their calls, and the library would refuse these calls.
  void all_reduce_on(synStreamHandle stream) const {
    const World& world = session.world();
    void* const buffer = memory_.pointer();
    if (world.rank == 0) world.board->barrier(0, world.size);
    succeed(
        hcclAllReduce(buffer, buffer, kCopiedCount, hcclFloat32, hcclSum, group.handle, stream));
    if (world.rank != 0) world.board->barrier(0, world.size);
  }
  [[nodiscard]] std::vector<float> read(synStreamHandle stream) const {
    std::vector<float> now(kCopiedCount, -1.0F);
    succeed(synMemCopyAsync(stream, memory_.address(), memory_.size(), host_address(now.data()),
                            DRAM_TO_HOST));
    static_cast<void>(synStreamSynchronize(stream));
    return now;
  }
  [[nodiscard]] const std::vector<float>& before() const { return before_; }

  // Requires that the collective on `stream` has failed on every rank because of rank 0's copy.
  void expect_failed_by_copy(synStreamHandle stream, hcclResult_t code, const std::string& cause) {
    const bool failed_copy = session.world().rank == 0;
    require_equal(synStreamSynchronize(stream), failed_copy ? synFail : synFailHccl,
                  "synchronising");
    expect_failed(group, code, 0);
    const std::string text = async_message(group.handle);
    require(contains(text, "all_reduce(5000, float, sum) did not run"), text);
    require(contains(text, cause), text);
    // On several nodes, the other ranks may already have reduced data into their buffers when they
    // learn of the failure.
    const bool one_node = node_of(0).empty();
    if (one_node || failed_copy) require(read(stream) == before_, "nothing was written");
  }

  Session& session;
  const Group& group;
  synStreamHandle first;
  synStreamHandle second;

 private:
  DeviceMemory memory_;
  std::vector<float> before_;
};

RANK_TEST(FailedCopy, FromABadAddressFailsTheCollectiveBehindIt, 3) {
  Fixture fixture(session, group, stream);
  if (world.rank == 0) fixture.copy_from(8);
  fixture.all_reduce_on(stream);
  fixture.expect_failed_by_copy(stream, hcclInvalidArgument, "host address 0x8");
  expect_usable_remains(session, group, stream, hcclInvalidArgument);
}

RANK_TEST(FailedCopy, ForLackOfMemoryFailsTheCollectiveBehindIt, 3) {
  Fixture fixture(session, group, stream);
  if (world.rank == 0) {
    refuse_system_calls({SYS_pwrite64}, ENOSPC);
    fixture.copy_from(host_address(fixture.before().data()));
  }
  fixture.all_reduce_on(stream);
  fixture.expect_failed_by_copy(stream, hcclOutOfMemory, "No space left");
}

RANK_TEST(FailedCopy, FailsTheCollectiveThatWaitsForItsEvent, 3) {
  Fixture fixture(session, group, stream);
  if (world.rank == 0) fixture.copy_from(8);
  synEventHandle copied = session.make_event();
  succeed(synEventRecord(copied, stream));
  succeed(synStreamWaitEvent(fixture.second, copied, 0));
  fixture.all_reduce_on(fixture.second);
  fixture.expect_failed_by_copy(fixture.second, hcclInvalidArgument, "host address 0x8");
}

// Rank 0 sends after a failed copy. Rank 1, which receives, and rank 2, which calls nothing, must
// get an error that names rank 0 and the cause.
RANK_TEST(FailedCopy, FailsTheMessageBehindIt, 3) {
  Fixture fixture(session, group, stream);
  std::vector<float> buffer(kCopiedCount);
  if (world.rank == 0) {
    fixture.copy_from(8);
    world.board->barrier(0, 2);
    succeed(hcclSend(buffer.data(), kCopiedCount, hcclFloat32, 1, group.handle, stream));
    require_equal(synStreamSynchronize(stream), synFail, "synchronising");
  } else {
    if (world.rank == 1) {
      succeed(hcclRecv(buffer.data(), kCopiedCount, hcclFloat32, 0, group.handle, stream));
      world.board->barrier(0, 2);
      require_equal(synStreamSynchronize(stream), synFailHccl, "synchronising");
    }
    await_async_error(group);
  }
  expect_failed(group, hcclInvalidArgument, 0);
  const std::string text = async_message(group.handle);
  require(contains(text, "did not run") && contains(text, "host address 0x8"), text);
}

// Once a synchronisation has reported the failed copy, copies and collectives must work again.
RANK_TEST(FailedCopy, IsClearedBySynchronising, 3) {
  Fixture fixture(session, group, stream);
  fixture.copy_from(8);
  std::vector<float> read(kCopiedCount, -1.0F);
  require(fixture.read(stream) == read, "a copy behind the failed one does not run");
  succeed(synStreamSynchronize(stream));
  fixture.all_reduce_on(stream);
  read = fixture.read(stream);
  require(read == std::vector<float>(kCopiedCount, 2.0F * static_cast<float>(world.size)),
          "the sum");
}

}  // namespace
}  // namespace hccl::test
