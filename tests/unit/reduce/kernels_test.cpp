// SPDX-License-Identifier: Apache-2.0
// Tests the kernels: reductions on every instruction set, averages, and copies.

#include "reduce/kernels.h"

#include "elements.h"
#include "reduce/reduce.h"
#include "reference.h"
#include "scalar_fold.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace hccl::reduce {
namespace {

// Averages of complete sums must match the scalar reference bit for bit.

TEST(AverageTile, MatchesReferenceBitwise) {
  constexpr std::size_t kCount = 300;
  for (const hcclDataType_t type : test::kAllTypes) {
    const std::size_t size = element_size(type);
    for (const std::uint32_t parts : {1U, 2U, 3U, 7U, 100U}) {
      std::vector<std::byte> values(kCount * size);
      std::vector<std::byte> expected(values.size());
      for (std::size_t i = 0; i < kCount; ++i) {
        const std::uint64_t sum = test::element_word(type, test::Data::numbers, 9, 0, i);
        test::store_word(type, &values[i * size], sum);
        const std::uint64_t mean = parts == 1 ? sum : test::average_of_sum(type, sum, parts);
        test::store_word(type, &expected[i * size], mean);
      }
      average_tile(type, values.data(), kCount, parts);
      EXPECT_EQ(values, expected) << type_name(type) << " of " << parts;
    }
  }
}

// The number of ranks may be larger than the largest value of the type.
TEST(AverageTile, DividesSmallIntegersByLargeNumbers) {
  std::byte value{0x80};  // -128
  average_tile(hcclInt8, &value, 1, 200);
  EXPECT_EQ(value, std::byte{0});
  value = std::byte{200};
  average_tile(hcclUint8, &value, 1, 300);
  EXPECT_EQ(value, std::byte{0});
}

// Returns the mean of `parts` equal values, computed from their prescaled sum. Each addition rounds
// to the type.
std::uint64_t mean_of_equal(hcclDataType_t type, std::uint64_t word, std::uint32_t parts) {
  std::array<std::byte, 2> scaled{}, sum{};
  test::store_word(type, scaled.data(), word);
  prescale_tile(type, scaled.data(), scaled.data(), 1, parts);
  sum = scaled;
  for (std::uint32_t part = 1; part < parts; ++part) {
    const std::array<const std::byte*, 2> sources{sum.data(), scaled.data()};
    std::byte* const to = sum.data();
    reduce_tile(type, hcclSum, sources, {&to, 1}, 1, StorePolicy::cached);
  }
  average_tile(type, sum.data(), 1, parts);
  std::uint16_t mean = 0;
  std::memcpy(&mean, sum.data(), sizeof mean);
  return mean;
}

// Averages of the largest finite values must be finite, although their sum is infinite.
TEST(AverageTile, StaysInRangeForPrescaledValues) {
  for (const std::uint32_t parts : {2U, 4U}) {
    EXPECT_EQ(mean_of_equal(hcclFloat16, 0x7BFF, parts), 0x7BFFU) << parts;
    EXPECT_EQ(mean_of_equal(hcclBfloat16, 0xFF7F, parts), 0xFF7FU) << parts;
  }
  for (const std::uint32_t parts : {3U, 5U, 64U, 100U, 4096U}) {  // the additions round
    EXPECT_LT(mean_of_equal(hcclFloat16, 0x7BFF, parts), 0x7C00U) << parts;
    EXPECT_LT(mean_of_equal(hcclBfloat16, 0x7F7F, parts), 0x7F80U) << parts;
  }
}

TEST(PrescaleTile, MatchesReferenceBitwise) {
  constexpr std::size_t kCount = 5'000;  // in several blocks
  for (const hcclDataType_t type : {hcclFloat16, hcclBfloat16}) {
    for (const std::uint32_t parts : {2U, 3U, 100U}) {
      std::vector<std::byte> values(kCount * 2);
      std::vector<std::byte> expected(values.size());
      for (std::size_t i = 0; i < kCount; ++i) {
        const std::uint64_t word = test::element_word(type, test::Data::specials, 9, 0, i);
        test::store_word(type, &values[i * 2], word);
        test::store_word(type, &expected[i * 2],
                         test::scaled(type, word, test::prescale_of(parts)));
      }
      prescale_tile(type, values.data(), values.data(), kCount, parts);
      EXPECT_EQ(values, expected) << type_name(type) << " of " << parts;
    }
  }
}

// Tests copy_tile(), which must copy every bit pattern to every destination, and must not write
// outside the destinations.

using Bytes = std::vector<std::byte>;

constexpr std::size_t kMargin = 128;
constexpr std::byte kPoison{0x5A};

Bytes random_bytes(std::size_t count) {
  std::mt19937 random(99);
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Copies `bytes` bytes from the offset `shift` to destinations at other offsets. If `in_place`, the
// last destination is the source.
void check(std::size_t bytes, std::size_t destination_count, std::size_t shift, bool in_place,
           StorePolicy policy) {
  Bytes source = random_bytes(bytes + shift);
  const Bytes before = source;
  std::vector<Bytes> buffers(destination_count, Bytes(bytes + 2 * kMargin, kPoison));
  std::vector<std::byte*> destinations;
  for (std::size_t i = 0; i < destination_count; ++i) {
    destinations.push_back(buffers[i].data() + kMargin + (shift + i * 13) % 64);
  }
  if (in_place) destinations.back() = source.data() + shift;
  copy_tile(source.data() + shift, destinations, bytes, policy);
  ASSERT_EQ(source, before);
  for (std::size_t i = 0; i < destination_count - (in_place ? 1 : 0); ++i) {
    Bytes wanted(buffers[i].size(), kPoison);
    std::copy(source.begin() + static_cast<std::ptrdiff_t>(shift), source.end(),
              wanted.begin() + (destinations[i] - buffers[i].data()));
    ASSERT_EQ(buffers[i], wanted) << bytes << " bytes, destination " << i << " of "
                                  << destination_count << ", shift " << shift;
  }
}

void check_all_ways(std::size_t bytes, std::size_t destinations) {
  for (const std::size_t shift : {0u, 1u, 16u, 63u}) {
    for (const bool in_place : {false, true}) {
      check(bytes, destinations, shift, in_place, StorePolicy::cached);
      check(bytes, destinations, shift, in_place, StorePolicy::interleaved);
      check(bytes, destinations, shift, in_place, StorePolicy::streaming);
    }
  }
}

TEST(CopyTile, CopiesToEveryDestinationAndNowhereElse) {
  for (const std::size_t bytes : {0u, 1u, 7u, 63u, 64u, 65u, 511u, 4095u, 4096u, 4159u, 10000u,
                                  16383u, 16384u, 16449u, 65536u}) {
    for (const std::size_t destinations : {1u, 2u, 8u, 16u}) {
      check_all_ways(bytes, destinations);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(CopyTile, SupportsAnyNumberOfDestinations) {
  for (const std::size_t destinations : {64u, 65u, 130u}) check_all_ways(1000, destinations);
}

// Tests the kernels of every instruction set of this processor. All must match the reference bit
// for bit, because ranks on different machines must agree. reduce_tile() uses only the best set.

using namespace reference;

// Returns the kernels for a processor on which this instruction set is the best one.
KernelTable kernels_of(std::int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().DeInit();
  return best_kernels();
}

class Kernels : public testing::TestWithParam<std::int64_t> {
 protected:
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

void check(const KernelTable& table, hcclDataType_t type, hcclRedOp_t operation, Values values,
           StorePolicy policy) {
  constexpr std::size_t kSources = 5;
  const auto sources = random_sources(type, values);
  const Bytes wanted = expected(type, operation, sources, rank_order(kSources));
  const FoldKernel& kernel = table.fold(type, operation);
  std::array<const std::byte*, kSources> pointers;
  for (std::size_t s = 0; s < kSources; ++s) pointers[s] = sources[s].data();
  for (const std::size_t count : {1u, 2u, 3u, 7u, 21u, 63u, 100u, 700u, 9000u}) {
    const std::size_t bytes = count * element_size(type);
    Bytes first(wanted.size()), second(wanted.size());
    std::array destinations{first.data(), second.data()};
    table.walks.reduce(kernel, {pointers.data(), kSources, destinations.data(), 2}, bytes, policy);
    for (const Bytes& result : {first, second}) {
      ASSERT_EQ(std::memcmp(result.data(), wanted.data(), bytes), 0)
          << type_name(type) << ' ' << operation_name(operation) << ' ' << count;
    }
  }
}

TEST_P(Kernels, MatchReferenceBitwise) {
  const KernelTable table = kernels_of(GetParam());
  for (const hcclDataType_t type : kAllTypes) {
    for (const hcclRedOp_t operation : reductions_of(type)) {
      for (const Values values : {Values::ordinary, Values::special}) {
        check(table, type, operation, values, StorePolicy::cached);
        check(table, type, operation, values, StorePolicy::streaming);
      }
    }
  }
}

// Returns the instruction sets of this processor. A set for which this build has no kernels uses
// those of the next lower set.
std::vector<std::int64_t> supported_targets() {
  std::vector<std::int64_t> targets;
  for (auto rest = static_cast<std::uint64_t>(hwy::SupportedTargets()); rest != 0;
       rest &= rest - 1) {
    targets.push_back(static_cast<std::int64_t>(rest & ~(rest - 1)));
  }
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Supported, Kernels, testing::ValuesIn(supported_targets()),
                         [](const auto& test) { return hwy::TargetName(test.param); });

// For every byte value and every number of ranks, the average must equal the quotient truncated
// toward zero.
TEST(Averages, OfBytesAreExact) {
  std::array<std::byte, 256> all{}, zeros{}, result{};
  for (std::size_t value = 0; value < all.size(); ++value)
    all.at(value) = static_cast<std::byte>(value);
  std::vector<const std::byte*> sources{all.data()};
  std::byte* const destination = result.data();
  for (int ranks = 2; ranks <= 64; ++ranks) {
    sources.push_back(zeros.data());
    for (const hcclDataType_t type : {hcclInt8, hcclUint8}) {
      reduce_tile(type, hcclAvg, sources, {&destination, 1}, all.size(), StorePolicy::cached);
      for (int value = 0; value < 256; ++value) {
        const int number = type == hcclInt8 ? static_cast<std::int8_t>(value) : value;
        ASSERT_EQ(result.at(static_cast<std::size_t>(value)),
                  static_cast<std::byte>(number / ranks))
            << number << " / " << ranks;
      }
    }
  }
}

// Checks values around zero and at both ends of the range, for every number of ranks. Averages must
// equal the quotient truncated toward zero. If the number of ranks is a power of two, the kernels
// divide with shifts, which on their own would round down.
template <class T>
void expect_exact_averages(hcclDataType_t type) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto lowest = static_cast<Unsigned>(std::numeric_limits<T>::min());
  std::vector<T> values;
  for (int i = -130; i <= 130; ++i) {  // wraps around to the highest values
    values.push_back(static_cast<T>(i));
    values.push_back(static_cast<T>(lowest + static_cast<Unsigned>(i)));
  }
  const std::vector<T> zeros(values.size());
  std::vector<T> result(values.size());
  std::byte* const destination = reinterpret_cast<std::byte*>(result.data());
  std::vector<const std::byte*> sources{reinterpret_cast<const std::byte*>(values.data())};
  for (int ranks = 2; ranks <= 64; ++ranks) {
    sources.push_back(reinterpret_cast<const std::byte*>(zeros.data()));
    std::ranges::fill(result, T{77});
    reduce_tile(type, hcclAvg, sources, {&destination, 1}, values.size(), StorePolicy::cached);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(result[i], static_cast<T>(values[i] / static_cast<T>(ranks)))
          << +values[i] << " / " << ranks;
    }
  }
}

TEST(Averages, OfWiderIntegersAreExact) {
  expect_exact_averages<std::int32_t>(hcclInt32);
  expect_exact_averages<std::uint32_t>(hcclUint32);
  expect_exact_averages<std::int64_t>(hcclInt64);
  expect_exact_averages<std::uint64_t>(hcclUint64);
}

}  // namespace
}  // namespace hccl::reduce
