// SPDX-License-Identifier: Apache-2.0
// Tests the command line of hccl-perf and its documentation.

#include "parse_words.h"

#include <fstream>
#include <set>
#include <sstream>

namespace hccl_perf {
namespace {

// Tests the command line: short options and defaults as in nccl-tests, and errors that name the
// faulty argument.

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

TEST(Options, AcceptTheShortOptionsOfNcclTests) {
  const Options options =
      parse("-b 8 -e 64M -f 8 -g 4 -t 2 -n 7 -w 3 -N 2 -c 0 -o all -d all -a 3 -T 60 all_reduce");
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

TEST(Options, AcceptTheLongOptionsOfNcclTests) {
  const Options options = parse(
      "broadcast --minbytes=1K --maxbytes 2K --stepbytes 512 --ngpus 2 --iters 5 --warmup_iters 0 "
      "--check 2 --root all");
  EXPECT_EQ(options.sizes(), (std::vector<std::uint64_t>{1024, 1536, 2048}));
  EXPECT_TRUE(options.all_roots);
  EXPECT_EQ(options.checks, 2U);
}

TEST(Options, RootMinusOneMeansAllRoots) {
  EXPECT_TRUE(parse({"broadcast", "-r", "-1"}).all_roots);
}

TEST(Options, DependOnTheProgramName) {
  const Options options = std::get<Options>(parse_all({"/opt/bin/reduce_scatter_perf", "-g", "2"}));
  EXPECT_STREQ(options.collective->name, "reduce_scatter");
  EXPECT_THROW(static_cast<void>(parse_all({"all_reduce_perf", "broadcast"})), UsageError);
}

TEST(Options, BitwiseReductionsNeedIntegers) {
  const Options options = parse({"-o", "bitxor", "-d", "uint8", "all_reduce"});
  ASSERT_EQ(options.reductions.size(), 1U);
  EXPECT_STREQ(options.reductions[0].name, "bitxor");
  EXPECT_THROW(static_cast<void>(parse({"-o", "bitor", "-d", "half", "reduce"})), UsageError);
  EXPECT_THROW(static_cast<void>(parse({"-o", "bitand", "-d", "all", "reduce"})), UsageError);
}

TEST(Options, ASingleBoundAdjustsTheOther) {
  EXPECT_EQ(parse({"all_reduce", "-e", "1M"}).min_bytes, 1U << 20);
  EXPECT_EQ(parse({"all_reduce", "-b", "64M"}).max_bytes, 64U << 20);
}

TEST(Options, SizesDoubleIfTheDefaultStepIsTooLarge) {
  EXPECT_EQ(parse({"all_reduce", "-b", "1K", "-e", "4K"}).sizes(),
            (std::vector<std::uint64_t>{1024, 2048, 4096}));
  EXPECT_EQ(parse({"all_reduce", "-b", "1K", "-e", "4K", "-i", "1M"}).sizes().size(), 1U);
  EXPECT_EQ(parse({"all_reduce", "-b", "1M", "-e", "4M"}).sizes().size(), 4U);
}

TEST(Options, AcceptTheUsualDataTypeNames) {
  const std::pair<std::vector<const char*>, const char*> synonyms[] = {
      {{"half", "float16", "fp16", "f16"}, "half"},
      {{"float", "float32", "fp32", "f32", "single"}, "float"},
      {{"double", "float64", "fp64", "f64"}, "double"},
      {{"bfloat16", "bf16"}, "bfloat16"},
      {{"int8", "i8", "char"}, "int8"},
      {{"uint8", "u8", "byte"}, "uint8"},
      {{"int32", "i32", "int"}, "int32"},
      {{"uint32", "u32"}, "uint32"},
      {{"int64", "i64"}, "int64"},
      {{"uint64", "u64"}, "uint64"}};
  for (const auto& [names, ours] : synonyms) {
    for (const char* name : names) {
      const Options options = parse({"all_reduce", "-d", name});
      ASSERT_EQ(options.types.size(), 1U);
      EXPECT_STREQ(options.types[0].name, ours) << name;
      EXPECT_EQ(options.type_name, ours);
    }
  }
}

TEST(Options, SmallMessageTestsDefaultTo8Bytes) {
  for (const char* name : {"pingpong", "message_rate"}) {
    EXPECT_EQ(parse({name}).sizes(), std::vector<std::uint64_t>{8});
    EXPECT_EQ(parse({name, "-b", "1K", "-e", "1K"}).sizes(), std::vector<std::uint64_t>{1024});
  }
  EXPECT_EQ(parse({"bidirectional"}).sizes(), std::vector<std::uint64_t>{32U << 20});
  expect_error({"pingpong", "--plan", "0"}, "pingpong consists of messages");
}

TEST(Options, CollectivesWithoutReductionReportNone) {
  const Options options = parse({"all_gather", "-o", "max"});
  ASSERT_EQ(options.reductions.size(), 1U);
  EXPECT_STREQ(options.reductions[0].name, "none");
}

TEST(Options, BarrierHasOneRow) {
  EXPECT_EQ(parse({"barrier", "-b", "8", "-e", "1M", "-f", "2"}).sizes().size(), 1U);
}

TEST(Options, AcceptNeutralValuesOfUnsupportedOptions) {
  EXPECT_NO_THROW(static_cast<void>(parse({"all_reduce", "-R", "0", "-G", "0", "-m", "1"})));
}

TEST(Options, AcceptParallelInitialisation) {
  for (const char* way : {"0", "1"}) {
    EXPECT_NO_THROW(static_cast<void>(parse({"all_reduce", "-p", way, "-t", "2"})));
    EXPECT_NO_THROW(static_cast<void>(parse({"all_reduce", "--parallel_init", way, "-t", "2"})));
  }
  expect_error({"all_reduce", "-p", "2"}, "parallel_init");
}

TEST(Options, AcceptEveryBlockingMode) {
  EXPECT_EQ(parse({"all_reduce"}).blocking, Blocking::none);
  EXPECT_EQ(parse({"all_reduce", "-z", "1"}).blocking, Blocking::wait_barrier);
  EXPECT_TRUE(parse({"all_reduce", "-z", "1"}).barrier_between_calls());
  EXPECT_EQ(parse({"all_reduce", "--blocking", "2"}).blocking, Blocking::wait);
  EXPECT_FALSE(parse({"all_reduce", "-z", "2"}).barrier_between_calls());
  EXPECT_TRUE(parse({"all_reduce", "-z", "3"}).barrier_between_calls());
  expect_error({"all_reduce", "-z", "4"}, "blocking");
}

TEST(Options, RepeatPassesWhenRunsAreCompared) {
  EXPECT_EQ(parse({"all_reduce"}).repeats, 1U);
  EXPECT_EQ(parse({"all_reduce", "--csv", "x"}).repeats, 1U);
  EXPECT_EQ(parse({"all_reduce", "--json", "x"}).repeats, 7U);
  EXPECT_EQ(parse({"all_reduce", "--compare", "x"}).repeats, 7U);
  EXPECT_EQ(parse({"all_reduce", "--compare", "x", "--repeats", "9"}).repeats, 9U);
  EXPECT_EQ(parse({"all_reduce", "--compare", "x"}).compare_threshold, 10);
  EXPECT_EQ(parse({"all_reduce", "--compare", "x", "--compare-threshold", "2.5"}).compare_threshold,
            2.5);
  EXPECT_NO_THROW(
      static_cast<void>(parse({"all_reduce", "--compare", "x", "--repeats", "2", "-N", "3"})));
  expect_error({"all_reduce", "--compare", "x", "--repeats", "2", "-N", "2"}, "--repeats 2 -N 2");
  expect_error({"all_reduce", "--compare-threshold", "-1"}, "compare-threshold");
}

TEST(Options, RefuseNonFiniteNumbers) {
  for (const char* wrong : {"nan", "NaN", "-nan", "inf", "-inf", "infinity"}) {
    expect_error({"all_reduce", "--min-time", wrong}, "min-time");
    expect_error({"all_reduce", "--compare-threshold", wrong}, "compare-threshold");
  }
}

TEST(Options, AcceptUnitsInTimeouts) {
  EXPECT_EQ(parse({"all_reduce", "--timeout", "1.5"}).timeout, 1.5);
  EXPECT_EQ(parse({"all_reduce", "-T", "30s"}).timeout, 30);
  EXPECT_EQ(parse({"all_reduce", "--timeout", "5m"}).timeout, 300);
  EXPECT_EQ(parse({"all_reduce", "--timeout", "2h"}).timeout, 7200);
  for (const char* wrong : {"", "-1", "5x", "m", "1.2.3", "5 m", "99999999"})
    expect_error({"all_reduce", "--timeout", wrong}, "timeout");
}

TEST(Options, SpreadProcessesOverNodes) {
  EXPECT_EQ(parse({"all_reduce", "-g", "3"}).nodes, 1);
  EXPECT_EQ(parse({"all_reduce", "-g", "3", "--nodes", "2"}).nodes, 2);
  EXPECT_EQ(parse({"all_reduce", "-g", "128", "--nodes", "2"}).processes, 128);
  expect_error({"all_reduce", "--nodes", "2"}, "--nodes 2 with -g 1");
  expect_error({"all_reduce", "-g", "4", "-t", "4", "--nodes", "8"}, "give -g 8 or more");
  expect_error({"all_reduce", "-g", "129", "--nodes", "2"}, "--nodes 2 makes 65 ranks on a node");
  for (const char* wrong : {"0", "-1", "two", "1.5"})
    expect_error({"all_reduce", "-g", "4", "--nodes", wrong}, "--nodes");
}

TEST(Options, NameUnsupportedAndUnknownOptions) {
  expect_error({"all_reduce", "-G", "5"}, "-G");
  expect_error({"all_reduce", "-m", "4"}, "-m");
  expect_error({"all_reduce", "-mpi"}, "mpirun");
  expect_error({"all_reduce", "-D", "4"}, "-D");
  expect_error({"-D", "4", "all_reduce"}, "-D");
  expect_error({"all_reduce", "--frobnicate"}, "--frobnicate");
  expect_error({"all_reduce", "extra"}, "extra");
}

TEST(Options, ExplainInvalidValues) {
  expect_error({"all_reduce", "-b", "12Q"}, "12Q");
  expect_error({"all_reduce", "-b", "2M", "-e", "1M"}, "-b");
  expect_error({"all_reduce", "-g", "0"}, "ngpus");
  expect_error({"all_reduce", "-g"}, "ngpus");
  expect_error({"all_reduce", "-n", "0"}, "iters");
  expect_error({"all_reduce", "-n", "-5"}, "iters");
  for (const char* wrong : {"-1", "99999999999999999999", "x"})
    expect_error({"all_reduce", "-N", wrong}, "run_cycles");
  expect_error({"all_reduce", "-o", "median"}, "median");
  expect_error({"all_reduce", "-d", "float128"}, "float128");
  expect_error({"broadcast", "-r", "first"}, "first");
  expect_error({"all_reduce", "-a", "4"}, "average");
  expect_error({"all_reduce", "-b", "1", "-e", "2", "-i", "0"}, "-i 0");
  expect_error({"all_reduce", "-b", "1", "-e", "64M", "-i", "1"}, "-i 1");
  for (const char* file : {"--json", "--csv", "--raw", "--compare"})
    expect_error({"all_reduce", "-N", "0", file, "x"}, "-N 0");
  expect_error({"all_reduce", "--csv", "x", "--json", "x"}, "both name x");
  expect_error({"all_reduce", "--csv", "./x", "--json", "x"}, "--json and --csv both name x");
  expect_error({"all_reduce", "--csv", "no/../x", "--json", "x"}, "--json and --csv both name x");
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

// Tests that the page about the options and --help list the same options.

// Adds to `names` the words of `written` that begin with a dash, without punctuation.
void add_names(std::set<std::string>& names, std::string written) {
  for (char& letter : written) {
    if (letter == ',' || letter == '`' || letter == '|') letter = ' ';
  }
  std::istringstream words(written);
  for (std::string word; words >> word;) {
    if (word.starts_with('-')) names.insert(word);
  }
}

std::set<std::string> names_in_help() {
  const Text help = std::get<Text>(parse_all({"hccl-perf", "--help"}));
  std::set<std::string> names;
  std::istringstream lines(help.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  -")) add_names(names, line.substr(0, line.find(' ', 2)));
  }
  return names;
}

// Returns the names in the first column of the option tables of the page.
std::set<std::string> names_in_page() {
  std::ifstream page(HCCL_PERF_PAGE);
  EXPECT_TRUE(page) << HCCL_PERF_PAGE;
  std::set<std::string> names;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `-")) add_names(names, line.substr(1, line.find(" | ", 1)));
  }
  return names;
}

TEST(OptionsDocument, ListsTheOptionsOfHelp) {
  const std::set<std::string> help = names_in_help();
  EXPECT_GT(help.size(), 50U);
  EXPECT_EQ(names_in_page(), help);
}

}  // namespace
}  // namespace hccl_perf
