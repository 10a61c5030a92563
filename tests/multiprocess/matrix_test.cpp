// SPDX-License-Identifier: Apache-2.0
// Compares the results of each collective's matrix of operations with a reference, and tests
// barriers and a buffer of more than 4 GiB.

#include "matrix.h"

#include "rank_test.h"
#include "session.h"

#include <algorithm>
#include <fstream>
#include <ostream>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

struct Case {
  Collective collective;
  int size;
};

// Prints the parameter for ctest.
void PrintTo(const Case& value, std::ostream* out) {
  *out << name_of(value.collective) << " of " << value.size;
}

class Processes : public testing::TestWithParam<Case> {};
class Threads : public testing::TestWithParam<Case> {};
class Barrier : public testing::TestWithParam<int> {};

RankFunction matrix(Collective collective) {
  return [collective](World& world) { run_matrix(world, collective); };
}

RankOptions patient() { return {.seconds = 150}; }

TEST_P(Processes, MatchTheReferenceBitwise) {
  const auto [collective, size] = GetParam();
  EXPECT_EQ(failures(run_ranks(size, matrix(collective), patient())), "");
}

TEST_P(Threads, MatchTheReferenceBitwise) {
  const auto [collective, size] = GetParam();
  EXPECT_EQ(failures(run_ranks_as_threads(size, matrix(collective), patient())), "");
}

TEST_P(Barrier, HoldsUntilAllRanksArrive) {
  EXPECT_EQ(failures(run_ranks(GetParam(), run_barriers, patient())), "");
}

TEST(Barrier, HoldsThreadsUntilAllArrive) {
  EXPECT_EQ(failures(run_ranks_as_threads(4, run_barriers, patient())), "");
}

// The comparison must be able to fail. Every rank must detect that one rank has the wrong input.
TEST(Control, EveryRankDetectsWrongInput) {
  const auto unlike = in_session([](RANK_PARAMETERS) {
    const Operation operation{.count = 1, .seed = world.rank == 1 ? 5U : 6U};
    OperationRun run(session, group, operation);
    succeed(run.queue(stream));
    succeed(synStreamSynchronize(stream));
    bool noticed = false;
    try {
      run.verify();
    } catch (const Failure&) {
      noticed = true;
    }
    require(noticed, "a wrong element went undetected");
  });
  EXPECT_EQ(failures(run_ranks(3, unlike)), "");
}

std::vector<Case> cases(const std::vector<int>& sizes) {
  std::vector<Case> all;
  for (const Collective collective :
       {Collective::all_reduce, Collective::broadcast, Collective::all_gather,
        Collective::reduce_scatter, Collective::reduce, Collective::all_to_all}) {
    for (const int size : sizes) all.push_back({collective, size});
  }
  return all;
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return join(name_of(info.param.collective), "_", info.param.size);
}

INSTANTIATE_TEST_SUITE_P(Matrix, Processes,
                         testing::ValuesIn(cases({1, 2, 3, 4, 5, 6, 7, 8, 9, 16})), name_of_case);
INSTANTIATE_TEST_SUITE_P(Matrix, Threads, testing::ValuesIn(cases({1, 2, 3, 8})), name_of_case);
INSTANTIATE_TEST_SUITE_P(Matrix, Barrier, testing::Values(1, 2, 3, 5, 8, 16),
                         testing::PrintToStringParamName());

// If the ranks have only two cores, these buffers exceed the caches, so ranks write results with
// non-temporal stores.
class LargeHostBuffers : public testing::TestWithParam<int> {};

TEST_P(LargeHostBuffers, AreReducedBitwise) {
  const std::size_t elements = sanitized() ? 600'007 : 1'200'007;  // sanitizers are slow
  const auto reduce = [elements](RANK_PARAMETERS) {
    for (const Collective collective :
         {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce}) {
      const std::size_t blocks =
          traits(collective).has_blocks_in_input ? static_cast<std::size_t>(world.size) : 1;
      for (const bool in_place : {false, true}) {
        run_and_verify(session, group, stream,
                       {.collective = collective,
                        .root = 1,
                        .count = elements / blocks,
                        .in_place = in_place,
                        .offset = 5,
                        .seed = 11,
                        .placement = Placement::host});
      }
    }
  };
  EXPECT_EQ(failures(run_ranks(GetParam(), in_session(reduce), patient())), "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, LargeHostBuffers, testing::Values(2, 3, 8),
                         testing::PrintToStringParamName());

// This size does not fit in 32 bits.
constexpr std::size_t kLargeSize = (std::size_t{4} << 30) + 4096;
constexpr std::size_t kPiece = std::size_t{16} << 20;
constexpr std::size_t kNeeded = 12;  // GiB

std::size_t memory_gib() {
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    std::size_t kilobytes = 0;
    if (key == "MemTotal:" && file >> kilobytes) return kilobytes >> 20;
  }
  return 0;
}

// Returns eight consecutive elements of a rank, starting at element `word` * 8. The elements differ
// between words and between ranks.
std::uint64_t eight_elements(std::uint64_t word, int rank) {
  std::uint64_t bits = (word * 2 + static_cast<std::uint64_t>(rank)) * 0x9E3779B97F4A7C15U;
  bits ^= bits >> 29;
  return bits * 0xBF58476D1CE4E5B9U;
}

// Adds two words byte by byte, each modulo 256.
std::uint64_t add_bytes(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kLow = 0x7F7F7F7F7F7F7F7F;
  return ((a & kLow) + (b & kLow)) ^ ((a ^ b) & ~kLow);
}

template <class Word>
void for_pieces(Word word) {
  std::vector<std::uint64_t> piece(kPiece / 8);
  for (std::size_t at = 0; at < kLargeSize; at += kPiece)
    word(piece, at, std::min(kPiece, kLargeSize - at));
}

RANK_BODY(reduce_four_gib) {
  const DeviceMemory buffer(session.device(), kLargeSize);
  for_pieces([&](std::vector<std::uint64_t>& piece, std::size_t at, std::size_t bytes) {
    for (std::size_t word = 0; word < bytes / 8; ++word)
      piece[word] = eight_elements(at / 8 + word, world.rank);
    succeed(synMemCopyAsync(stream, host_address(piece.data()), bytes, buffer.address() + at,
                            HOST_TO_DRAM));
    succeed(synStreamSynchronize(stream));
  });
  void* const memory = buffer.pointer();
  succeed(hcclAllReduce(memory, memory, kLargeSize, hcclInt8, hcclSum, group.handle, stream));
  succeed(synStreamSynchronize(stream));
  for_pieces([&](std::vector<std::uint64_t>& piece, std::size_t at, std::size_t bytes) {
    succeed(synMemCopyAsync(stream, buffer.address() + at, bytes, host_address(piece.data()),
                            DRAM_TO_HOST));
    succeed(synStreamSynchronize(stream));
    for (std::size_t word = 0; word < bytes / 8; ++word) {
      const std::uint64_t index = at / 8 + word;
      if (piece[word] == add_bytes(eight_elements(index, 0), eight_elements(index, 1))) continue;
      require(false, join("elements from ", index * 8, " on"));
    }
  });
}

TEST(LargeBuffers, AllReduceInPlaceBeyondFourGiB) {
  if (sanitized()) GTEST_SKIP() << "needs another build: a sanitizer build would take minutes";
  if (memory_gib() < kNeeded) GTEST_SKIP() << "needs " << kNeeded << " GiB";
  const RankOptions options{.seconds = 240};
  EXPECT_EQ(failures(run_ranks(2, in_session(reduce_four_gib), options)), "");
}

}  // namespace
}  // namespace hccl::test
