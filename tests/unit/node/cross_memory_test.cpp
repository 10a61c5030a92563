// SPDX-License-Identifier: Apache-2.0
// Tests reads of another rank's host memory.

#include "node/cross_memory.h"

#include "engine_ranks.h"
#include "node/kernel_copies.h"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl::node {
namespace {

constexpr std::size_t kLongRange = 3 << 20;  // several pieces

// The two ranks of a node, both in this process. Both take `pid_of_rank_1` for the pid of rank 1.
// `reads`: when rank 1 uses cross-memory attach.
struct Pair {
  explicit Pair(int pid_of_rank_1, DirectReads reads = DirectReads::always)
      : control(ControlBlock::create(2)),
        segment(SharedSegment::map(control)),
        reader(ControlBlock(segment->data()), 0, {getpid(), pid_of_rank_1}, DirectReads::always),
        peer(ControlBlock(segment->data()), 1, {getpid(), pid_of_rank_1}, reads) {}

  FileDescriptor control;
  std::shared_ptr<SharedSegment> segment;
  CrossMemory reader;
  CrossMemory peer;
};

std::uint64_t location_of(std::vector<std::byte>& bytes) {
  return reinterpret_cast<std::uint64_t>(bytes.data());
}

TEST(CrossMemory, ReadsLongRanges) {
  if (!can_read_processes()) GTEST_SKIP() << "needs process_vm_readv: the system refuses it";
  Pair pair(getpid());
  std::vector<std::byte> from(kLongRange), to(kLongRange);
  for (std::size_t at = 0; at < kLongRange; ++at) from[at] = static_cast<std::byte>(at * 7 % 251);
  EXPECT_FALSE(pair.peer.is_readable_by(0)) << "rank 0 has not tried yet";
  ASSERT_TRUE(pair.reader.can_read(1));
  EXPECT_TRUE(pair.peer.is_readable_by(0));
  EXPECT_TRUE(pair.reader.can_read_all());
  ASSERT_TRUE(pair.reader.read(1, to.data(), location_of(from), kLongRange));
  EXPECT_EQ(from, to);
}

TEST(CrossMemory, FailsIfMemoryCannotBeRead) {
  if (!can_read_processes()) GTEST_SKIP() << "needs process_vm_readv: the system refuses it";
  Pair pair(getpid());
  void* const sealed = mmap(nullptr, kLongRange, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(sealed, MAP_FAILED);
  ASSERT_TRUE(pair.reader.can_read(1));
  std::vector<std::byte> to(kLongRange);
  EXPECT_FALSE(pair.reader.read(1, to.data(), reinterpret_cast<std::uint64_t>(sealed), kLongRange));
  EXPECT_FALSE(pair.reader.can_read(1));
  EXPECT_FALSE(pair.peer.is_readable_by(0));
  munmap(sealed, kLongRange);
}

TEST(CrossMemory, ReadsNothingIfDisabled) {
  Pair pair(getpid(), DirectReads::never);
  EXPECT_FALSE(pair.reader.can_read(1)) << "rank 1 does not permit it";
  EXPECT_FALSE(pair.peer.can_read(0)) << "rank 1 does not use it";
}

TEST(CrossMemory, PrefersStagingOnlyWhereTheKernelCopiesSlowly) {
  EXPECT_FALSE(Pair(getpid(), DirectReads::never).peer.prefers_staging());
  EXPECT_FALSE(Pair(getpid(), DirectReads::always).peer.prefers_staging());
  EXPECT_TRUE(Pair(getpid(), DirectReads::rarely).peer.prefers_staging());
  EXPECT_EQ(Pair(getpid(), DirectReads::if_faster).peer.prefers_staging(), kernel_copies_slowly());
}

TEST(CrossMemory, ReadsNothingWithoutAPid) {
  Pair pair(0);
  EXPECT_FALSE(pair.reader.can_read(1));
}

TEST(CrossMemory, WaitsForTheTagOfAPeerThatJoinsLater) {
  if (!can_read_processes()) GTEST_SKIP() << "needs process_vm_readv: the system refuses it";
  const FileDescriptor control = ControlBlock::create(2);
  const auto segment = SharedSegment::map(control);
  CrossMemory reader(ControlBlock(segment->data()), 0, {getpid(), getpid()}, DirectReads::always);
  EXPECT_FALSE(reader.can_read(1));
  const CrossMemory peer(ControlBlock(segment->data()), 1, {getpid(), getpid()},
                         DirectReads::always);
  EXPECT_TRUE(reader.can_read(1));
}

// If a rank knows the wrong pid for its peer, it must detect that the process with that pid lacks
// the peer's tag.
TEST(CrossMemory, RecognisesAnotherProcess) {
  const pid_t other = fork();
  if (other == 0) {
    for (;;) pause();
  }
  {
    Pair pair(other);  // created after the fork, so the child has no such tag
    EXPECT_FALSE(pair.reader.can_read(1));
  }
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST(CrossMemory, StopsIfTheCommunicatorFails) {
  if (!can_read_processes()) GTEST_SKIP() << "needs process_vm_readv: the system refuses it";
  Pair pair(getpid());
  std::vector<std::byte> bytes(kLongRange);
  ASSERT_TRUE(pair.reader.can_read(1));
  Fault(ControlBlock(pair.segment->data())).raise(hcclSystemError, "rank 1 has failed");
  std::vector<std::byte> to(kLongRange);
  EXPECT_THROW(static_cast<void>(pair.reader.read(1, to.data(), location_of(bytes), kLongRange)),
               Error);
}

}  // namespace
}  // namespace hccl::node
