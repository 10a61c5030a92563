// SPDX-License-Identifier: Apache-2.0
// The kernels of every instruction set that this processor has give the bits of the reference:
// ranks on unequal machines must agree, and only the best set is used by reduce_tile.
#include "reduce/kernels.h"

#include "reference.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace hccl::reduce {
namespace {

using namespace reference;

// Returns the kernels for a processor with this instruction set and no better one.
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

TEST_P(Kernels, EqualTheReferenceBitwise) {
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

// The table of an instruction set this build has no kernels for is that of the next lower one.
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

// Every byte over every number of ranks.
TEST(Averages, OfBytesAreDividedExactly) {
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

// The ends of the range, both sides of zero and of every multiple near it, over every number of
// ranks: powers of two are divided by shifts, which round down.
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

TEST(Averages, OfWiderIntegersAreDividedExactly) {
  expect_exact_averages<std::int32_t>(hcclInt32);
  expect_exact_averages<std::uint32_t>(hcclUint32);
  expect_exact_averages<std::int64_t>(hcclInt64);
  expect_exact_averages<std::uint64_t>(hcclUint64);
}

}  // namespace
}  // namespace hccl::reduce
