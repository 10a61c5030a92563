// SPDX-License-Identifier: Apache-2.0
// reduce_tile() must match the scalar reference bit for bit. Covers all types and reductions, many
// numbers of sources and destinations, lengths near those of vectors and blocks, many alignments,
// cached and streaming stores, and in-place reductions.
#include "reduce/reduce.h"

#include "reference.h"

#include <algorithm>
#include <array>
#include <cfenv>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

namespace hccl::reduce {
namespace {

using namespace reference;

constexpr std::size_t kMaxDestinations = 16;
constexpr std::size_t kTailMargin =
    256;  // bytes before and after every buffer; half of them are poisoned
constexpr std::byte kTailPoison{0xA5};

enum class InPlace { none, same, reversed };

// A buffer at a chosen distance from the start of a cache line, with poison around it.
class Buffer {
 public:
  Buffer() : storage_(kMostCount * 8 + 2 * kTailMargin + 128) {}

  std::byte* place(std::size_t distance, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data()) + kTailMargin;
    data_ = storage_.data() + kTailMargin + (64 - address % 64) % 64 + distance;
    bytes_ = bytes;
    std::fill(data_ - kTailMargin / 2, data_ + bytes + kTailMargin / 2, kTailPoison);
    return data_;
  }
  std::byte* data() const { return data_; }
  bool holds(const std::byte* values) const { return std::memcmp(data_, values, bytes_) == 0; }
  bool surroundings_untouched() const {
    const auto is_poison = [](std::byte b) { return b == kTailPoison; };
    return std::all_of(data_ - kTailMargin / 2, data_, is_poison) &&
           std::all_of(data_ + bytes_, data_ + bytes_ + kTailMargin / 2, is_poison);
  }

 private:
  Bytes storage_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

struct Case {
  std::size_t source_count, destination_count, count;
  std::size_t distance;  // from the start of a cache line; kMixed: differs for every buffer
  InPlace in_place;
  StorePolicy policy;

  static constexpr std::size_t kMixed = 1000;

  std::string text() const {
    return std::to_string(source_count) + " sources, " + std::to_string(destination_count) +
           " destinations, " + std::to_string(count) + " elements, distance " +
           std::to_string(distance) + ", in place " + std::to_string(static_cast<int>(in_place)) +
           (policy == StorePolicy::streaming ? ", streaming" : ", cached");
  }
};

class ReduceTile : public testing::TestWithParam<std::tuple<hcclDataType_t, hcclRedOp_t, Values>> {
 protected:
  hcclDataType_t type() const { return std::get<0>(GetParam()); }
  hcclRedOp_t operation() const { return std::get<1>(GetParam()); }

  void SetUp() override { values_ = random_sources(type(), std::get<2>(GetParam())); }

  const Bytes& result_of(std::size_t source_count) {
    Bytes& result = results_[source_count];
    if (result.empty()) {
      result = expected(type(), operation(), values_, rank_order(source_count));
    }
    return result;
  }

  // Places the operands, reduces, and checks every byte of the operands and around them.
  void check(const Case& c) {
    const std::size_t bytes = c.count * size_of(type());
    const auto distance = [&](std::size_t i) {
      return c.distance == Case::kMixed ? i * 7 % 64 : c.distance;
    };
    std::vector<const std::byte*> sources;
    for (std::size_t s = 0; s < c.source_count; ++s) {
      sources.push_back(source_buffers_[s].place(distance(s), bytes));
      std::memcpy(source_buffers_[s].data(), values_[s].data(), bytes);
    }
    std::vector<Buffer*> targets;
    std::vector<std::byte*> destinations;
    for (std::size_t d = 0; d < c.destination_count; ++d) {
      Buffer& own = destination_buffers_[d];
      own.place(distance(d + c.source_count), bytes);
      const bool shared = c.in_place != InPlace::none && d < c.source_count;
      const std::size_t s = c.in_place == InPlace::reversed ? c.source_count - 1 - d : d;
      targets.push_back(shared ? &source_buffers_[s] : &own);
      destinations.push_back(targets.back()->data());
    }
    reduce_tile(type(), operation(), sources, destinations, c.count, c.policy);
    for (const Buffer* target : targets) {
      ASSERT_TRUE(target->holds(result_of(c.source_count).data())) << c.text();
      ASSERT_TRUE(target->surroundings_untouched()) << c.text();
    }
    for (std::size_t s = 0; s < c.source_count; ++s) {
      if (std::find(destinations.begin(), destinations.end(), sources[s]) == destinations.end()) {
        ASSERT_TRUE(source_buffers_[s].holds(values_[s].data())) << c.text();
      }
      ASSERT_TRUE(source_buffers_[s].surroundings_untouched()) << c.text();
    }
  }

  void check_all_ways(std::size_t source_count, std::size_t destination_count, std::size_t count) {
    const std::size_t size = size_of(type());
    for (const std::size_t distance : {std::size_t{0}, std::size_t{1}, size, Case::kMixed}) {
      for (const InPlace in_place : {InPlace::none, InPlace::same, InPlace::reversed}) {
        for (const StorePolicy policy : {StorePolicy::cached, StorePolicy::streaming}) {
          check({source_count, destination_count, count, distance, in_place, policy});
          if (HasFatalFailure()) return;
        }
      }
    }
  }

  std::vector<Bytes> values_;

 private:
  std::array<Bytes, kMostSources + 1> results_;
  std::array<Buffer, kMostSources> source_buffers_;
  std::array<Buffer, kMaxDestinations> destination_buffers_;
};

TEST_P(ReduceTile, MatchesReferenceBitwise) {
  for (std::size_t sources = 1; sources <= kMostSources; ++sources) {
    for (const std::size_t destinations : {1u, 2u, 8u, 16u}) {
      for (const std::size_t count :
           {0u,  1u,   2u,   3u,   5u,   8u,   15u,  16u,  17u,  31u,  33u,
            64u, 127u, 128u, 129u, 255u, 256u, 257u, 300u, 511u, 513u, 1100u}) {
        check_all_ways(sources, destinations, count);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ReduceTile, MatchesReferenceOnLongTiles) {
  for (const std::size_t sources : {2u, 3u, 5u, 8u, 16u}) {
    for (const std::size_t count : {4096u, 4097u, 8191u, 9000u}) {
      check_all_ways(sources, sources, count);
      check_all_ways(sources, 1, count);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(ReduceTile, GivesSameBitsForAnySplit) {
  std::mt19937 random(4711);
  const std::size_t size = size_of(type());
  for (const std::size_t count : {3u, 8u, 11u}) {
    for (int round = 0; round < 50; ++round) {
      Bytes first(kMostCount * size, kTailPoison);
      Bytes second = first;
      for (std::size_t done = 0; done < kMostCount;) {
        const std::size_t longest = random() % 2 == 0 ? 40 : 3000;
        const std::size_t length = std::min(1 + random() % longest, kMostCount - done);
        std::vector<const std::byte*> sources;
        for (std::size_t s = 0; s < count; ++s) sources.push_back(values_[s].data() + done * size);
        const std::array destinations{first.data() + done * size, second.data() + done * size};
        reduce_tile(type(), operation(), sources, destinations, length,
                    random() % 2 == 0 ? StorePolicy::cached : StorePolicy::streaming);
        done += length;
      }
      ASSERT_EQ(first, result_of(count)) << count << " sources, round " << round;
      ASSERT_EQ(second, result_of(count)) << count << " sources, round " << round;
    }
  }
}

std::string case_name(const testing::TestParamInfo<ReduceTile::ParamType>& info) {
  return std::string(type_name(std::get<0>(info.param))) + "_" +
         operation_name(std::get<1>(info.param)) +
         (std::get<2>(info.param) == Values::special ? "_special" : "");
}

INSTANTIATE_TEST_SUITE_P(Floats, ReduceTile,
                         testing::Combine(testing::Values(hcclFloat32, hcclBfloat16, hcclFloat16,
                                                          hcclFloat64),
                                          testing::ValuesIn(kAllReductions),
                                          testing::Values(Values::ordinary, Values::special)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Integers, ReduceTile,
                         testing::Combine(testing::Values(hcclInt8, hcclUint8, hcclInt32,
                                                          hcclUint32, hcclInt64, hcclUint64),
                                          testing::ValuesIn(reductions_of(hcclInt8)),
                                          testing::Values(Values::ordinary)),
                         case_name);

// Returns `from` with the sign bit of each element flipped.
Bytes negated(hcclDataType_t type, Bytes from) {
  const std::size_t size = size_of(type);
  for (std::size_t i = size - 1; i < from.size(); i += size) from[i] ^= std::byte{0x80};
  return from;
}

// A fold in a different order must give different bits, and reduce_tile() must fold its sources in
// the given order. The seventh source cancels the first, so rounding errors depend on the position
// of the seventh source, even in bfloat16.
TEST(ReduceTileOrder, DifferentOrderGivesDifferentBits) {
  for (const hcclDataType_t type : {hcclFloat32, hcclBfloat16}) {
    auto sources = random_sources(type, Values::ordinary);
    sources[6] = negated(type, sources[0]);
    std::vector<std::size_t> order = rank_order(8);
    const Bytes in_order = expected(type, hcclSum, sources, order);
    std::swap(order[2], order[6]);
    const Bytes in_other_order = expected(type, hcclSum, sources, order);
    EXPECT_NE(in_order, in_other_order) << type_name(type);
    std::array<const std::byte*, 8> pointers{};
    for (std::size_t i = 0; i < order.size(); ++i) pointers[i] = sources[order[i]].data();
    Bytes result(in_order.size());
    const std::array destinations{result.data()};
    reduce_tile(type, hcclSum, pointers, destinations, kMostCount, StorePolicy::cached);
    EXPECT_EQ(in_other_order, result) << type_name(type);
  }
}

// A kernel may run on a waiting thread of the program, and the program may have changed that
// thread's rounding mode.
TEST(ReduceTileMode, IgnoresRoundingModeOfThread) {
  const auto sources = random_sources(hcclFloat32, Values::ordinary);
  const Bytes to_nearest = expected(hcclFloat32, hcclSum, sources, rank_order(2));
  const std::array<const std::byte*, 2> pointers{sources[0].data(), sources[1].data()};
  Bytes result(to_nearest.size());
  const std::array destinations{result.data()};
  const int before = std::fegetround();
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  reduce_tile(hcclFloat32, hcclSum, pointers, destinations, kMostCount, StorePolicy::cached);
  const int after = std::fegetround();
  std::fesetround(before);
  EXPECT_EQ(after, FE_UPWARD);
  EXPECT_EQ(result, to_nearest);
}

}  // namespace
}  // namespace hccl::reduce
