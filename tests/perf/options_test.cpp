// SPDX-License-Identifier: Apache-2.0
// The command line: letters and defaults of nccl-tests, and errors that name what is wrong.
#include "options.h"

#include "text.h"

#include <vector>

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

std::variant<Options, Text> parse_all(const std::vector<const char*>& words) {
  return parse_options(static_cast<int>(words.size()), words.data());
}

Options parse(const std::vector<const char*>& words) {
  std::vector<const char*> all = {"hccl-perf"};
  for (const char* word : words) all.push_back(word);
  return std::get<Options>(parse_all(all));
}

// The message of the error these arguments make.
std::string error_of(const std::vector<const char*>& words) {
  try {
    static_cast<void>(parse(words));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_error(const std::vector<const char*>& words, const std::string& named) {
  const std::string message = error_of(words);
  EXPECT_NE(message.find(named), std::string::npos)
      << "'" << message << "' does not name '" << named << "'";
  EXPECT_EQ(message.find('\n'), std::string::npos) << "more than one line: " << message;
}

TEST(Options, DefaultsAreThoseOfNcclTests) {
  const Options options = parse({"all_reduce"});
  EXPECT_STREQ(options.collective->name, "all_reduce");
  EXPECT_EQ(options.min_bytes, 32U << 20);
  EXPECT_EQ(options.max_bytes, 32U << 20);
  EXPECT_EQ(options.step_bytes, 1U << 20);
  EXPECT_EQ(options.step_factor, 1U);
  EXPECT_EQ(options.processes, 1);
  EXPECT_EQ(options.threads, 1);
  EXPECT_EQ(options.iterations, 20U);
  EXPECT_EQ(options.warmup, 1U);
  EXPECT_EQ(options.cycles, 1U);
  EXPECT_EQ(options.checks, 1U);
  EXPECT_EQ(options.averaging, Averaging::average);
  ASSERT_EQ(options.types.size(), 1U);
  EXPECT_STREQ(options.types[0].name, "float");
  ASSERT_EQ(options.reductions.size(), 1U);
  EXPECT_STREQ(options.reductions[0].name, "sum");
  EXPECT_FALSE(options.wants_latency());
}

TEST(Options, TakesTheLettersOfNcclTests) {
  const Options options = parse({"-b", "8",   "-e", "64M", "-f", "8",  "-g", "4",  "-t",
                                 "2",  "-n",  "7",  "-w",  "3",  "-N", "2",  "-c", "0",
                                 "-o", "all", "-d", "all", "-a", "3",  "-T", "60", "all_reduce"});
  EXPECT_EQ(options.sizes(),
            (std::vector<std::uint64_t>{8, 64, 512, 4096, 32768, 262144, 2097152, 16777216}));
  EXPECT_EQ(options.processes, 4);
  EXPECT_EQ(options.threads, 2);
  EXPECT_EQ(options.iterations, 7U);
  EXPECT_EQ(options.warmup, 3U);
  EXPECT_EQ(options.cycles, 2U);
  EXPECT_EQ(options.checks, 0U);
  EXPECT_EQ(options.types.size(), 10U);
  EXPECT_EQ(options.reductions.size(), 5U);
  EXPECT_EQ(options.averaging, Averaging::maximum);
  EXPECT_EQ(options.timeout, 60.0);
}

TEST(Options, TakesTheLongNamesOfNcclTests) {
  const Options options =
      parse({"broadcast", "--minbytes=1K", "--maxbytes", "2K", "--stepbytes", "512", "--ngpus", "2",
             "--iters", "5", "--warmup_iters", "0", "--check", "2", "--root", "all"});
  EXPECT_EQ(options.sizes(), (std::vector<std::uint64_t>{1024, 1536, 2048}));
  EXPECT_TRUE(options.all_roots);
  EXPECT_EQ(options.checks, 2U);
}

TEST(Options, AllRootsAreAlsoMinusOne) { EXPECT_TRUE(parse({"broadcast", "-r", "-1"}).all_roots); }

TEST(Options, GoByTheProgramsName) {
  const Options options = std::get<Options>(parse_all({"/opt/bin/reduce_scatter_perf", "-g", "2"}));
  EXPECT_STREQ(options.collective->name, "reduce_scatter");
  EXPECT_THROW(static_cast<void>(parse_all({"all_reduce_perf", "broadcast"})), UsageError);
}

TEST(Options, ABoundGivenAloneTakesTheOtherAlong) {
  EXPECT_EQ(parse({"all_reduce", "-e", "1M"}).min_bytes, 1U << 20);
  EXPECT_EQ(parse({"all_reduce", "-b", "64M"}).max_bytes, 64U << 20);
}

TEST(Options, SizesDoubleWhereTheDefaultStepWouldLeaveOutAllButTheFirst) {
  EXPECT_EQ(parse({"all_reduce", "-b", "1K", "-e", "4K"}).sizes(),
            (std::vector<std::uint64_t>{1024, 2048, 4096}));
  EXPECT_EQ(parse({"all_reduce", "-b", "1K", "-e", "4K", "-i", "1M"}).sizes().size(), 1U);
  EXPECT_EQ(parse({"all_reduce", "-b", "1M", "-e", "4M"}).sizes().size(), 4U);
}

TEST(Options, CollectivesWithoutReductionShowNone) {
  const Options options = parse({"all_gather", "-o", "max"});
  ASSERT_EQ(options.reductions.size(), 1U);
  EXPECT_STREQ(options.reductions[0].name, "none");
}

TEST(Options, BarrierHasOneRow) {
  EXPECT_EQ(parse({"barrier", "-b", "8", "-e", "1M", "-f", "2"}).sizes().size(), 1U);
}

TEST(Options, AcceptNeutralValuesOfUnsupportedLetters) {
  EXPECT_NO_THROW(
      static_cast<void>(parse({"all_reduce", "-z", "0", "-G", "0", "-m", "1", "-p", "1"})));
}

TEST(Options, NameUnsupportedAndUnknownLetters) {
  expect_error({"all_reduce", "-G", "5"}, "-G");
  expect_error({"all_reduce", "-m", "4"}, "-m");
  expect_error({"all_reduce", "-D", "4"}, "-D");
  expect_error({"-D", "4", "all_reduce"}, "-D");
  expect_error({"all_reduce", "--frobnicate"}, "--frobnicate");
  expect_error({"all_reduce", "extra"}, "extra");
}

TEST(Options, NameWhatIsWrongWithAValue) {
  expect_error({"all_reduce", "-b", "12Q"}, "12Q");
  expect_error({"all_reduce", "-b", "2M", "-e", "1M"}, "-b");
  expect_error({"all_reduce", "-g", "0"}, "ngpus");
  expect_error({"all_reduce", "-g"}, "ngpus");
  expect_error({"all_reduce", "-n", "0"}, "iters");
  expect_error({"all_reduce", "-n", "-5"}, "iters");
  expect_error({"all_reduce", "-o", "median"}, "median");
  expect_error({"all_reduce", "-d", "float128"}, "float128");
  expect_error({"broadcast", "-r", "first"}, "first");
  expect_error({"all_reduce", "-a", "4"}, "average");
  expect_error({"all_reduce", "-b", "1", "-e", "2", "-i", "0"}, "-i 0");
  expect_error({"all_reduce", "-b", "1", "-e", "64M", "-i", "1"}, "-i 1");
  expect_error({"all_reduce", "-N", "0", "--json", "x"}, "-N 0");
  expect_error({"all_produce"}, "all_produce");
  expect_error({}, "no collective");
}

TEST(Options, HelpShowsExamplesAndEveryCollective) {
  const Text help = std::get<Text>(parse_all({"hccl-perf", "--help"}));
  for (const char* shown : {"mpirun", "--json", "reduce_scatter", "-g,--ngpus", "Exit status"}) {
    EXPECT_NE(help.text.find(shown), std::string::npos) << shown;
  }
  EXPECT_EQ(help.text.find("cudagraph"), std::string::npos) << "neutral options are not advertised";
}

}  // namespace
}  // namespace hccl_perf
