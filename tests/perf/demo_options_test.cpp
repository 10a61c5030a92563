// SPDX-License-Identifier: Apache-2.0
// Tests the options of hccl_demo.
#include "parse_words.h"

namespace hccl_perf {
namespace {

TEST(DemoOptions, TranslateToThoseOfNcclTests) {
  const Options options = parse(
      "--test reduce --size 32m --loop 50 --test_root 3 --data_type bfloat16 --reduction_op max "
      "--no_correctness --nranks 8 --node_id 0 --ranks_per_node 8 --result_csv out.csv "
      "--same_buffers --no_color --measure bw");
  EXPECT_STREQ(options.collective->name, "reduce");
  EXPECT_EQ(options.sizes(), (std::vector<std::uint64_t>{32U << 20}));
  EXPECT_EQ(options.iterations, 50U);
  EXPECT_EQ(options.root, 3);
  EXPECT_STREQ(options.types.at(0).name, "bfloat16");
  EXPECT_STREQ(options.reductions.at(0).name, "max");
  EXPECT_EQ(options.checks, 0U);
  EXPECT_EQ(options.processes, 8);
  EXPECT_TRUE(options.processes_given);
  EXPECT_EQ(options.csv_path, "out.csv");
  EXPECT_FALSE(options.latency);
}

TEST(DemoOptions, NameTheTestsOfHcclDemo) {
  const std::pair<const char*, const char*> names[] = {
      {"all2all", "alltoall"}, {"send_recv", "sendrecv"}, {"all_gather", "all_gather"}};
  for (const auto& [theirs, ours] : names)
    EXPECT_STREQ(parse({"--test", theirs}).collective->name, ours);
}

TEST(DemoOptions, GiveARangeOfSizes) {
  EXPECT_EQ(parse({"--test", "all_reduce", "--size_range", "32b", "128B"}).sizes(),
            (std::vector<std::uint64_t>{32, 64, 128}));
  EXPECT_EQ(
      parse({"--test", "all_reduce", "--size_range", "1K", "1m", "--size_range_inc", "5"}).sizes(),
      (std::vector<std::uint64_t>{1U << 10, 1U << 15, 1U << 20}));
}

TEST(DemoOptions, MeasureLatency) {
  EXPECT_TRUE(parse({"--test", "all_reduce", "--measure", "latency"}).latency);
  expect_error({"--test", "all_reduce", "--measure", "speed"}, "speed");
}

TEST(DemoOptions, StartRanksOnlyOnThisMachine) {
  EXPECT_EQ(parse({"all_reduce", "--nranks", "4"}).processes, 4);
  EXPECT_EQ(parse({"all_reduce", "--ranks_per_node", "4", "--node_id", "0"}).processes, 4);
  EXPECT_EQ(parse({"all_reduce", "--nranks", "4", "--ranks_per_node", "8"}).processes, 4);
  expect_error({"all_reduce", "--nranks", "16", "--ranks_per_node", "8"}, "--nodes N");
  expect_error({"all_reduce", "--nranks", "8", "--node_id", "1"}, "other machines");
  expect_error({"all_reduce", "--node_id", "0"}, "--nranks");
  expect_error({"all_reduce", "--nranks", "8", "-g", "8"}, "--nranks and --ngpus");
}

TEST(DemoOptions, RefuseContradictions) {
  expect_error({"broadcast", "--test", "all_reduce"}, "--test all_reduce");
  expect_error({"all_reduce", "--size", "1m", "-b", "1m"}, "--size and --minbytes");
  expect_error({"all_reduce", "--size", "1m", "--size_range", "1m", "2m"},
               "--size and --size_range");
  expect_error({"all_reduce", "--size_range", "1m", "2m", "-f", "2"}, "--stepfactor");
  expect_error({"all_reduce", "--size_range_inc", "2"}, "--size_range A B");
  expect_error({"all_reduce", "--size_range", "1m"}, "size_range");
  expect_error({"all_reduce", "--size_range", "1m", "x"}, "'x'");
  expect_error({"all_reduce", "--size", "1Q"}, "1Q");
}

TEST(DemoOptions, RequireAUnitForATimeout) {
  expect_error({"--test", "all_reduce", "--timeout", "10"}, "write 10m or 10s");
  EXPECT_EQ(parse({"--test", "all_reduce", "--timeout", "10m"}).timeout, 600);
  EXPECT_EQ(parse({"all_reduce", "--timeout", "10"}).timeout, 10);
}

TEST(DemoOptions, AreRefusedWithTheReplacement) {
  expect_error({"--test", "scale_validation"}, "sendrecv");
  expect_error({"--test", "send_recv", "--ranks_list", "0,1"}, "--ranks_list");
  expect_error({"--test", "all_reduce", "--custom_comm", "0,8"}, "-g");
  expect_error({"--test", "all_reduce", "--custom_comm=0,8"}, "--custom_comm");
  expect_error({"--test", "all_reduce", "--mpi"}, "mpirun");
  expect_error({"--test", "all_reduce", "-mpi", "-np", "8"}, "mpirun");
  expect_error({"--test", "all_reduce", "--data_csv", "x"}, "--data_csv");
}

}  // namespace
}  // namespace hccl_perf
