// SPDX-License-Identifier: Apache-2.0
// Tests that forked children can keep device memory, and that device memory can be trimmed, while
// several ranks run collectives.
#include "check.h"
#include "children.h"
#include "elements.h"
#include "rank_test.h"
#include "ranks.h"
#include "session.h"

#include <hccl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <hccl_emulation.h>
#include <unistd.h>

namespace hccl::test {
namespace {

constexpr std::size_t kWords = 300'000;
constexpr std::size_t kWordsSize = kWords * sizeof(std::uint32_t);

// Returns element `index` of `rank`'s input in a round.
std::uint32_t drawn_word(int rank, int round, std::size_t index) {
  return static_cast<std::uint32_t>(
      element_word(hcclUint32, Data::bits, static_cast<std::uint64_t>(round), rank, index));
}

// A rank's device buffers and their host views.
struct ForkBuffers {
  explicit ForkBuffers(const Session& session)
      : send(session.device(), kWordsSize),
        receive(session.device(), kWordsSize),
        input(static_cast<std::uint32_t*>(send.view())),
        output(static_cast<std::uint32_t*>(receive.view())) {}
  DeviceMemory send;
  DeviceMemory receive;
  std::uint32_t* input;
  std::uint32_t* output;
};

void write_inputs(const ForkBuffers& buffers, int rank, int round) {
  for (std::size_t i = 0; i < kWords; ++i) buffers.input[i] = drawn_word(rank, round, i);
  std::fill_n(buffers.output, kWords, 0xA5A5A5A5U);
}

[[nodiscard]] bool holds_sum(const ForkBuffers& buffers, int ranks, int round) {
  for (std::size_t i = 0; i < kWords; ++i) {
    std::uint32_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += drawn_word(rank, round, i);
    if (buffers.output[i] != sum) return false;
  }
  return true;
}

void reduce(const ForkBuffers& buffers, const Group& group, synStreamHandle stream, int round) {
  write_inputs(buffers, group.rank, round);
  succeed(hcclAllReduce(buffers.input, buffers.output, kWords, hcclUint32, hcclSum, group.handle,
                        stream));
  succeed(synStreamSynchronize(stream));
  require(holds_sum(buffers, group.size(), round), join("round ", round, " is wrong"));
}

// Forked children, such as data-loader workers, must see snapshots of the kept memory while the
// parent continues to run collectives in that memory.
RANK_TEST(KeepAtFork, GivesChildrenSnapshotsDuringCollectives, std::vector{1, 3}) {
  const ForkBuffers buffers(session);
  succeed(hcclEmulationKeepAtFork(buffers.receive.address(), kWordsSize, 1));
  succeed(hcclEmulationKeepAtFork(buffers.send.address(), kWordsSize, 1));
  reduce(buffers, group, stream, 0);
  std::array<int, 2> gate{};
  require(pipe(gate.data()) == 0, "pipe");
  std::vector<pid_t> children;
  for (int round = 1; round <= 4; ++round) {
    reduce(buffers, group, stream, round);
    children.push_back(start_child([&] {
      close(gate[1]);
      char byte = 0;
      if (read(gate[0], &byte, 1) != 0) return false;  // blocks until round 7 has ended
      const bool kept = holds_sum(buffers, group.size(), round) &&
                        buffers.input[7] == drawn_word(group.rank, round, 7);
      std::fill_n(buffers.output, kWords, 1U);
      return kept && hcclEmulationTrim(buffers.send.address(), kWordsSize) != hcclSuccess;
    }));
  }
  for (int round = 5; round < 8; ++round) reduce(buffers, group, stream, round);
  close(gate[0]);
  close(gate[1]);
  for (const pid_t child : children) require(succeeds(child), "the child finds the kept memory");
  require(holds_sum(buffers, group.size(), 7), "children write their own memory");
  reduce(buffers, group, stream, 8);
}

// Forks a child, which forks a grandchild. Returns whether the child and the grandchild both find
// kWords words of value 77 at `kept`.
bool two_generations_keep(const std::uint32_t* kept) {
  return succeeds(start_child([kept] {
    const auto is_kept = [kept] {
      return std::all_of(kept, kept + kWords, [](std::uint32_t got) { return got == 77; });
    };
    const pid_t grandchild = start_child(is_kept);
    return is_kept() && succeeds(grandchild);
  }));
}

// A thread must be able to fork while another thread runs collectives.
RANK_TEST(KeepAtFork, WorksInAThreadDuringCollectives, std::vector{1, 3}) {
  const ForkBuffers buffers(session);
  const DeviceMemory other(session.device(), kWordsSize);
  auto* const kept = static_cast<std::uint32_t*>(other.view());
  std::fill_n(kept, kWords, 77U);
  succeed(hcclEmulationKeepAtFork(other.address(), kWordsSize, 1));
  int good = 0;
  std::thread forking([&] {
    for (int round = 0; round < 8; ++round) good += two_generations_keep(kept) ? 1 : 0;
  });
  for (int round = 0; round < 12; ++round) reduce(buffers, group, stream, round);
  forking.join();
  require_equal(good, 8, "children that found the kept memory");
}

// Trimmed pages must read as zeros on every rank, whether one or all ranks trim, and whether they
// trim a whole buffer or a part of it.
RANK_TEST(Trim, LeavesZerosOnAllRanks, std::vector{1, 3}) {
  const ForkBuffers buffers(session);
  const auto trim = [&](const DeviceMemory& memory, std::size_t first, std::size_t bytes) {
    succeed(synStreamSynchronize(stream));
    succeed(hcclBarrier(group.handle, stream));  // no rank reads the memory after this
    succeed(synStreamSynchronize(stream));
    succeed(hcclEmulationTrim(memory.address() + first, bytes));
  };
  for (int round = 0; round < 9; ++round) {
    // The second all-reduce makes peers map the buffers as a whole.
    reduce(buffers, group, stream, 3 * round);
    reduce(buffers, group, stream, 3 * round + 1);
    const bool mine = round % 3 == 0 || group.rank == round % group.size();
    trim(buffers.send, 0, mine ? kWordsSize : 0);
    trim(buffers.receive, 50'000, mine ? kWordsSize / 2 : 0);
    reduce(buffers, group, stream, 3 * round + 2);
    // Trimmed pages must read as zeros in this process and in its peers.
    std::fill_n(buffers.input, kWords, 5U);
    trim(buffers.send, 0, mine ? kWordsSize : 0);
    const bool all = round % 3 == 0;
    const std::uint32_t others = all ? 0U : 5U * static_cast<std::uint32_t>(group.size() - 1);
    succeed(hcclAllReduce(buffers.send.pointer(), buffers.output, kWords, hcclUint32, hcclSum,
                          group.handle, stream));
    succeed(synStreamSynchronize(stream));
    constexpr std::size_t kPage = 4096 / sizeof(std::uint32_t);
    const auto is_right = [&](std::uint32_t got) { return got == others; };
    require(std::all_of(buffers.output + kPage, buffers.output + (kWords - kPage), is_right),
            join("round ", round, ": trimmed memory is not zero"));
  }
}

RANK_TEST(Trim, RefusesAnythingButAllocations, 1) {
  const DeviceMemory memory(session.device(), 1000);
  const auto expect_refused = [](hcclResult_t result, const char* part) {
    expect_code(result, hcclInvalidArgument, part);
  };
  expect_refused(hcclEmulationTrim(memory.address(), 1001), "by 1 bytes");
  expect_refused(hcclEmulationTrim(host_address(&memory), 1), "is not a device address");
  expect_refused(hcclEmulationKeepAtFork(memory.address() + 1, 1000, 1), "by 1 bytes");
  expect_refused(hcclEmulationKeepAtFork(0, 1000, 1), "is not a device address");
}

}  // namespace
}  // namespace hccl::test
