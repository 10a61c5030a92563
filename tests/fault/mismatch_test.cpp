// SPDX-License-Identifier: Apache-2.0
// Tests calls in which one rank, the odd one, differs from the others. Every rank must get an error
// that names the odd rank, and no output may change.
#include "faults.h"
#include "rank_test.h"

#include <ostream>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

struct Case {
  const char* what;
  Operation usual;
  Operation odd;
};

// Prints the parameter for ctest.
void PrintTo(const Case& value, std::ostream* out) { *out << value.what; }

const std::vector<Case>& cases() {
  using C = Collective;
  static const std::vector<Case> all{
      {"count", make_operation(C::all_reduce, 262'144, hcclFloat32, hcclSum),
       make_operation(C::all_reduce, 1025, hcclFloat32, hcclSum)},
      {"empty", make_operation(C::all_reduce, 100, hcclFloat32, hcclSum),
       make_operation(C::all_reduce, 0, hcclFloat32, hcclSum)},
      {"type", make_operation(C::all_reduce, 5000, hcclFloat32, hcclSum),
       make_operation(C::all_reduce, 5000, hcclInt32, hcclSum)},
      {"reduction", make_operation(C::reduce_scatter, 300, hcclBfloat16, hcclMin),
       make_operation(C::reduce_scatter, 300, hcclBfloat16, hcclMax)},
      {"root", make_operation(C::broadcast, 7000, hcclFloat32, hcclSum, 0),
       make_operation(C::broadcast, 7000, hcclFloat32, hcclSum, 1)},
      {"root_of_reduce", make_operation(C::reduce, 7000, hcclFloat64, hcclProd, 0),
       make_operation(C::reduce, 7000, hcclFloat64, hcclProd, 1)},
      {"small_and_large", make_operation(C::all_to_all, 24, hcclInt8, hcclSum),
       make_operation(C::all_to_all, 240'000, hcclInt8, hcclSum)},
      {"exchange", make_operation(C::all_to_all, 2400, hcclUint8, hcclSum),
       make_operation(C::reduce, 2400, hcclUint8, hcclSum)},
      {"collective", make_operation(C::all_gather, 999, hcclInt32, hcclSum),
       make_operation(C::broadcast, 999, hcclInt32, hcclSum)},
  };
  return all;
}

RankFunction mismatch(const Case& one, int odd) {
  return in_session([&one, odd](RANK_PARAMETERS) {
    run_and_verify(session, group, stream, all_reduce_of(100));
    world.board->barrier(0, world.size);  // a mismatch would abort an operation in progress

    Operation operation = world.rank == odd ? one.odd : one.usual;
    operation.offset = 3;
    OperationRun run(session, group, operation);
    const hcclResult_t result = run.queue(stream);
    require(result == hcclSuccess || result == hcclInvalidUsage,
            join("the call returned ", result));
    const synStatus synchronised = synStreamSynchronize(stream);
    // Between nodes, the error may reach a rank before its call. Then the call is refused and the
    // stream does not fail.
    if (result == hcclSuccess) expect_code(synchronised, synFailHccl);
    run.verify_untouched();
    expect_failed(group, hcclInvalidUsage, odd);
    if (world.size == 2) expect_failed(group, hcclInvalidUsage, 1 - odd);
    if (world.size > 2) {
      const std::string message = async_message(group.handle);
      require(contains(message, join("rank ", odd)), message);
      require(contains(message, name_of(one.usual.collective)), message);
    }
    expect_usable_remains(session, group, stream, hcclInvalidUsage);
  });
}

class Mismatch : public testing::TestWithParam<Case> {};

TEST_P(Mismatch, OfTwoRanksNamesBoth) {
  EXPECT_EQ(failures(run_ranks(2, mismatch(GetParam(), 1))), "");
}

TEST_P(Mismatch, OfEightRanksNamesTheOddOne) {
  EXPECT_EQ(failures(run_ranks(8, mismatch(GetParam(), 3))), "");
}

TEST_P(Mismatch, OfThreadsNamesTheOddOne) {
  EXPECT_EQ(failures(run_ranks_as_threads(3, mismatch(GetParam(), 2))), "");
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) { return info.param.what; }

INSTANTIATE_TEST_SUITE_P(Differences, Mismatch, testing::ValuesIn(cases()), name_of_case);

}  // namespace
}  // namespace hccl::test
