// SPDX-License-Identifier: Apache-2.0
// Tests that results are bit-identical in every run and on every rank, even if busy processes
// occupy cores and ranks take over work from each other.
#include "children.h"
#include "operation.h"
#include "rank_test.h"

#include <algorithm>
#include <atomic>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl::test {
namespace {

constexpr int kComparedRanks = 8;
constexpr std::size_t kComparedCount = 20'011;

// A process that keeps a core busy.
class BusyLoop {
 public:
  BusyLoop()
      : pid_(start_child([]() -> int {
          for (std::atomic<unsigned> turns{0};; ++turns) {
          }
        })) {}
  ~BusyLoop() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  BusyLoop(const BusyLoop&) = delete;
  BusyLoop& operator=(const BusyLoop&) = delete;

 private:
  pid_t pid_;
};

RankFunction runs_of(hcclDataType_t type, int runs) {
  return in_session([=](RANK_PARAMETERS) {
    const Operation operation{.type = type, .count = kComparedCount, .seed = 20'240'229};
    OperationRun run(session, group, operation);
    for (int at = 0; at < runs; ++at) {
      succeed(run.queue(stream));
      succeed(synStreamSynchronize(stream));
      run.verify();
    }
  });
}

class SameBits : public testing::TestWithParam<hcclDataType_t> {};

TEST_P(SameBits, InTwoHundredRunsUnderLoad) {
  const BusyLoop one;
  const BusyLoop another;
  EXPECT_EQ(failures(run_ranks(kComparedRanks, runs_of(GetParam(), scaled(200)))), "");
}

std::string name_of_type(const testing::TestParamInfo<hcclDataType_t>& info) {
  return name_of(info.param);
}

INSTANTIATE_TEST_SUITE_P(Types, SameBits, testing::Values(hcclFloat32, hcclBfloat16), name_of_type);

// The test data must reveal the order of reduction: another order must change the result's bits.
TEST(Control, ADifferentReductionOrderChangesTheBits) {
  int different = 0;
  for (std::size_t index = 0; index < kComparedCount; ++index) {
    std::vector<std::uint64_t> sources;
    sources.reserve(kComparedRanks);
    for (int rank = 0; rank < kComparedRanks; ++rank) {
      sources.push_back(element_word(hcclFloat32, Data::numbers, 20'240'229, rank, index));
    }
    const std::uint64_t in_order = fold(hcclFloat32, hcclSum, sources);
    std::rotate(sources.begin(), sources.begin() + 3, sources.end());
    different += fold(hcclFloat32, hcclSum, sources) != in_order ? 1 : 0;
  }
  EXPECT_GT(different, static_cast<int>(kComparedCount / 10));
}

}  // namespace
}  // namespace hccl::test
