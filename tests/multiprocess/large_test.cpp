// SPDX-License-Identifier: Apache-2.0
// Past 4 GiB, where 32 bits end.
#include "rank_test.h"
#include "session.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

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

// Eight elements of a rank from position `word` * 8 on; no two pieces are alike.
std::uint64_t eight_elements(std::uint64_t word, int rank) {
  std::uint64_t bits = (word * 2 + static_cast<std::uint64_t>(rank)) * 0x9E3779B97F4A7C15U;
  bits ^= bits >> 29;
  return bits * 0xBF58476D1CE4E5B9U;
}

// Bytes added side by side, each for itself.
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

TEST(Large, AllReduceInPlacePastFourGiB) {
  if (sanitized()) GTEST_SKIP() << "needs another build: this one would take minutes";
  if (memory_gib() < kNeeded) GTEST_SKIP() << "needs " << kNeeded << " GiB";
  const RankOptions options{.seconds = 240};
  EXPECT_EQ(failures(run_ranks(2, in_session(reduce_four_gib), options)), "");
}

}  // namespace
}  // namespace hccl::test
