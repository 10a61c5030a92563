// SPDX-License-Identifier: Apache-2.0
// Tests a call on a rank that has no free file descriptor. The call must fail the communicator on
// every rank, but must end no process.
#include "faults.h"
#include "rank_test.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace hccl::test {
namespace {

// The process cannot open descriptors while an object of this class exists.
class NoDescriptors {
 public:
  NoDescriptors() {
    require(getrlimit(RLIMIT_NOFILE, &usual_) == 0, "reading the limit of descriptors");
    const rlimit none{0, usual_.rlim_max};
    require(setrlimit(RLIMIT_NOFILE, &none) == 0, "setting the limit of descriptors");
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &usual_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit usual_{};
};

using QueueCall = hcclResult_t (*)(void*, const Group&, synStreamHandle);

hcclResult_t queue_all_reduce(void* buffer, const Group& group, synStreamHandle stream) {
  return hcclAllReduce(buffer, buffer, 16, hcclFloat32, hcclSum, group.handle, stream);
}

// Rank 0 receives and rank 1 sends. Rank 0 needs a descriptor to sleep until the message arrives.
hcclResult_t queue_message(void* buffer, const Group& group, synStreamHandle stream) {
  if (group.rank == 0) return hcclRecv(buffer, 16, hcclFloat32, 1, group.handle, stream);
  return hcclSend(buffer, 16, hcclFloat32, 0, group.handle, stream);
}

// Returns a rank function in which rank 0 calls `queue_call` without free descriptors, on a stream
// that the communicator has not used yet.
RankFunction call_without_descriptors(QueueCall queue_call) {
  const auto call = [queue_call](RANK_PARAMETERS) {
    synStreamHandle fresh = session.make_stream();
    const DeviceMemory memory(session.device(), 4096);
    void* const buffer = memory.pointer();
    succeed(queue_all_reduce(buffer, group, stream));
    succeed(queue_message(buffer, group, stream));
    succeed(synStreamSynchronize(stream));
    if (world.rank == 0) {
      const NoDescriptors limit;
      succeed(queue_call(buffer, group, fresh));
      require_equal(synStreamSynchronize(fresh), synFailHccl, "synchronising without descriptors");
    } else {
      await_async_error(group);
    }
    expect_failed(group, hcclSystemError, 0);
    require(contains(async_message(group.handle), "raise ulimit -n"), async_message(group.handle));
    expect_usable_remains(session, group, fresh, hcclSystemError);
  };
  return in_session(call, move_to_own_node);
}

class Descriptors : public testing::Test {
 protected:
  void SetUp() override {
    if (sanitized()) GTEST_SKIP() << "needs another build: sanitizers need descriptors themselves";
  }
};

TEST_F(Descriptors, ShortageForALaneFailsTheCommunicator) {
  EXPECT_EQ(failures(run_ranks(2, call_without_descriptors(queue_all_reduce))), "");
}

TEST_F(Descriptors, ShortageForAMessageFailsTheCommunicator) {
  EXPECT_EQ(failures(run_ranks(2, call_without_descriptors(queue_message))), "");
}

}  // namespace
}  // namespace hccl::test
