// SPDX-License-Identifier: Apache-2.0
// Tests how collectives on host memory are cut into slices and shares.
#include "node/host_slices.h"

#include "node/node_segment.h"

#include <algorithm>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

CollectiveCall call_of(Collective collective, std::uint64_t count, int ranks) {
  CollectiveCall call;
  call.collective = collective;
  call.type = hcclFloat32;
  call.operation = traits(collective).reduces ? hcclSum : hcclOpNone;
  call.root = traits(collective).has_root()
                  ? static_cast<int>(count % static_cast<std::uint64_t>(ranks))
                  : -1;
  call.count = traits(collective).exchanges() ? count * static_cast<std::uint64_t>(ranks) : count;
  return call;
}

// Calls visit(slices, call, ranks, segment_bytes) for every collective with data and for random
// sizes.
template <class Visit>
void for_many_calls(Visit visit) {
  std::mt19937_64 random(17);
  for (const int ranks : {2, 3, 8, kMaxRanks}) {
    for (const auto collective :
         {Collective::all_reduce, Collective::broadcast, Collective::all_gather,
          Collective::reduce_scatter, Collective::reduce, Collective::all_to_all}) {
      for (int round = 0; round < 50; ++round) {
        const std::uint64_t count = 1 + (random() >> (44 + random() % 18));
        const CollectiveCall call = call_of(collective, count, ranks);
        const std::uint64_t segment = 32ULL << 10 << random() % 4;
        visit(HostSlices(call, ranks, segment), call, ranks, segment);
      }
    }
  }
}

TEST(HostSlices, CoverEachChunkOnce) {
  for_many_calls([](const HostSlices& slices, const CollectiveCall& call, int ranks, auto) {
    std::uint64_t end = 0;
    for (std::uint32_t number = 0; number < slices.count(); ++number) {
      const Slice slice = slices.slice(number);
      ASSERT_EQ(slice.first_byte, end);
      ASSERT_EQ(slice.first_byte % 64, 0U);
      ASSERT_GT(slice.bytes, 0U);
      end += slice.bytes;
    }
    EXPECT_EQ(end, chunk_bytes(call, ranks));
  });
}

TEST(HostSlices, FitIntoASegmentOfTheStagingBuffer) {
  for_many_calls(
      [](const HostSlices& slices, const CollectiveCall& call, int ranks, std::uint64_t segment) {
        const std::uint64_t longest = slices.slice(0).bytes;
        EXPECT_LE(slices.staged_offset_of(send_chunks(call, ranks) - 1) + longest, segment);
      });
}

TEST(HostSlices, AreSharedOutCompletely) {
  for_many_calls([](const HostSlices& slices, const CollectiveCall& call, int ranks, auto) {
    for (const std::uint32_t number : {0U, slices.count() - 1}) {
      const Slice slice = slices.slice(number);
      if (call.collective == Collective::reduce && ranks == 2) {
        EXPECT_EQ(slices.share(slice, call.root).bytes, slice.bytes);
      }
      std::uint64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Slice share = slices.share(slice, rank);
        ASSERT_EQ(share.first_byte, end);
        ASSERT_TRUE(share.first_byte % 64 == 0 || share.bytes == 0);
        end += share.bytes;
      }
      EXPECT_EQ(end, slice.bytes);
    }
  });
}

}  // namespace
}  // namespace hccl::node
