// SPDX-License-Identifier: Apache-2.0
// Makes one allocation fail in one of two ranks, at any point from hcclGetUniqueId to
// hcclCommDestroy. Every call must return in time, with success or an error, and no process may
// crash. The other rank must learn of the failure, not wait until its time limit.
#include "arrangements.h"
#include "base/shared_memory.h"
#include "device/arena_view.h"
#include "failing_memory.h"
#include "faults.h"

#include <random>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

constexpr std::size_t kCount = 5'000;

// Joins a communicator, makes calls and destroys the communicator. If joining or a call fails,
// skips the remaining calls, and aborts the communicator if the rank has joined.
class Lifecycle {
 public:
  Lifecycle(World& world, long failing)
      : world_(world), session_(world), stream_(session_.make_stream()) {
    succeed(synDeviceMalloc(session_.device(), kCount * 4, 0, 0, &buffer_));
    succeed(synMemsetD32Async(buffer_, 1, kCount, stream_));
    succeed(synStreamSynchronize(stream_));
    host_.assign(kCount, 1);
    fail_allocation(failing);
  }

  // Runs the lifecycle. Returns the number of counted allocations.
  long run() {
    const bool joined = join();
    bool sound = joined && calls();
    if (joined) {
      const CountAllocations counting;
      // After a failed call, abort the communicator, so that the other ranks fail too.
      const hcclResult_t ended =
          sound ? hcclCommDestroy(communicator_) : hcclCommAbort(communicator_);
      note(ended);
    }
    return counted_allocations();
  }
  [[nodiscard]] const std::string& errors() const { return errors_; }
  void finish() {
    fail_allocation(0);
    succeed(synDeviceFree(session_.device(), buffer_, 0));
    session_.finish();
  }

 private:
  bool note(hcclResult_t result) {
    if (result == hcclSuccess) return true;
    errors_ += last_hccl_message() + "; ";
    return false;
  }
  bool note(synStatus status) {
    if (status == synSuccess) return true;
    errors_ += last_syn_message() + "; ";
    return false;
  }

  bool join() {
    hcclUniqueId id{};
    if (world_.rank == 0) {
      hcclResult_t result = hcclSuccess;
      {
        const CountAllocations counting;
        result = hcclGetUniqueId(&id);
      }
      // Retry without counting, because rank 1 waits for an id.
      if (!note(result)) succeed(hcclGetUniqueId(&id));
      world_.board->publish_id(0, id);
    } else {
      id = world_.board->await_id(0);
    }
    hcclResult_t result = hcclSuccess;
    {
      const CountAllocations counting;
      result = hcclCommInitRank(&communicator_, world_.size, id, world_.rank);
    }
    return note(result);
  }

  bool calls() {
    const int peer = 1 - world_.rank;
    void* const device = device_pointer(buffer_);
    for (const std::size_t count : {std::size_t{3}, kCount}) {
      for (void* const buffer : {device, static_cast<void*>(host_.data())}) {
        if (!called([&] {
              return hcclAllReduce(buffer, buffer, count, hcclInt32, hcclMax, communicator_,
                                   stream_);
            }))
          return false;
      }
    }
    return called([&] {
      static_cast<void>(hcclGroupStart());
      const hcclResult_t sent =
          hcclSend(device, kCount / 2, hcclInt32, peer, communicator_, stream_);
      const hcclResult_t received =
          hcclRecv(host_.data(), kCount / 2, hcclInt32, peer, communicator_, stream_);
      const hcclResult_t ended = hcclGroupEnd();
      return sent != hcclSuccess ? sent : received != hcclSuccess ? received : ended;
    });
  }

  template <class Call>
  bool called(Call call) {
    hcclResult_t result = hcclSuccess;
    synStatus status = synSuccess;
    {
      const CountAllocations counting;
      result = call();
      status = synStreamSynchronize(stream_);
    }
    const bool queued = note(result);
    return note(status) && queued;
  }

  World& world_;
  Session session_;
  synStreamHandle stream_ = nullptr;
  std::uint64_t buffer_ = 0;
  std::vector<std::int32_t> host_;
  hcclComm_t communicator_ = nullptr;
  std::string errors_;
};

class AllocationFailure : public testing::TestWithParam<Arrangement> {
 protected:
  // Runs both ranks, makes allocation number `failing` of `failing_rank` fail (0: none), and
  // returns the outcomes.
  static std::vector<RankOutcome> run(int failing_rank, long failing) {
    RankOptions options{
        .environment = GetParam().environment, .seconds = 30, .capture_stderr = true};
    options.environment.insert(options.environment.end(),
                               {{"HCCL_INIT_TIMEOUT", "4"}, {"HCCL_TIMEOUT", "4"}});
    return run_ranks(
        2,
        [&](World& world) {
          if (GetParam().two_nodes) move_to_own_node(world);
          Lifecycle life(world, world.rank == failing_rank ? failing : 0);
          const long counted = life.run();
          world.board->barrier(0, 2);  // a rank that has failed lives on, so its exit tells nothing
          life.finish();
          world.report(hccl::test::join(counted));
          world.report(life.errors());
        },
        options);
  }
};

TEST_P(AllocationFailure, IsAnErrorOrHarmless) {
  std::mt19937_64 random(test_seed());
  for (const int rank : {0, 1}) {
    const std::vector<RankOutcome> sound = run(rank, 0);
    ASSERT_EQ(failures(sound), "");
    const long all = std::stol(sound[static_cast<std::size_t>(rank)].reports.at(0));
    const long step = all / scaled(12) + 1;
    for (long number = 1 + static_cast<long>(random() % static_cast<unsigned long>(step));
         number <= all; number += step) {
      const std::vector<RankOutcome> outcomes = run(rank, number);
      EXPECT_EQ(failures(outcomes), "")
          << "allocation " << number << " of " << all << " of rank " << rank << "\n"
          << outcomes[0].stderr_text << outcomes[1].stderr_text;
      // If rank 0 fails, the server in its process may be unable to report it.
      if (rank == 1) {
        EXPECT_FALSE(contains(outcomes[0].reports.at(1), "raise HCCL_TIMEOUT"))
            << "allocation " << number << " of rank 1: " << outcomes[0].reports.at(1);
      }
    }
  }
}

// If a new mapping cannot be registered, it must be destroyed only after the registry's lock is
// released, because the mapping's destructor acquires that lock.
TEST(AllocationFailures, InSharedMappingsReleaseTheLock) {
  const FileDescriptor file = create_memory_file("test", 1 << 20);
  for (long number = 1; number <= 8; ++number) {
    const auto attempt = [&](auto map) {
      fail_allocation(number);
      const CountAllocations counting;
      try {
        static_cast<void>(map(file));
      } catch (const std::bad_alloc&) {
        return;
      }
    };
    attempt(SharedSegment::map);
    attempt(device::ArenaView::open);
  }
  fail_allocation(0);
  EXPECT_NE(SharedSegment::map(file), nullptr);
  EXPECT_NE(device::ArenaView::open(file), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Arrangements, AllocationFailure, testing::ValuesIn(every_arrangement()),
                         arrangement_name);

}  // namespace
}  // namespace hccl::test
