// SPDX-License-Identifier: Apache-2.0
// Tests training runs that must have equal results, and the files that they write.
#include "trainer_runs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include <unistd.h>

namespace ddp_trainer {
namespace {

const Words kShort{"--epochs", "3"};

Words with(Words words, const Words& more) {
  words.append(more);
  return words;
}

class Seeds : public testing::TestWithParam<const char*> {};

TEST_P(Seeds, LearnTheDigits) {
  const Outcome outcome = run({"-g", "8", "--seed", GetParam()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::size_t last = outcome.out.rfind("final: ");
  ASSERT_NE(last, std::string::npos) << outcome.out;
  std::istringstream words(outcome.out.substr(last));
  std::string end;
  std::string loss;
  std::string accuracy;
  std::string speed;
  double values[3] = {};
  words >> end >> loss >> values[0] >> accuracy >> values[1] >> speed >> values[2];
  EXPECT_TRUE(words) << outcome.out;
  EXPECT_EQ(loss + " " + accuracy + " " + speed, "loss test-accuracy samples/s");
  EXPECT_FALSE(words >> end) << "a later line follows the final one";
  EXPECT_LT(values[0], 0.2);
  EXPECT_GE(values[1], 0.97);
}

INSTANTIATE_TEST_SUITE_P(Training, Seeds, testing::Values("1", "2", "3"));

TEST(Training, IsIdenticalForAnyNumberOfRanksAndMode) {
  const Curve alone = train(kShort);
  EXPECT_EQ(alone.losses.size(), 3U);
  for (const char* ranks : {"1", "2", "4", "8"}) {
    for (const char* mode : {"ddp", "fast_ddp", "sharded"})
      EXPECT_EQ(train(with(kShort, {"-g", ranks, "--mode", mode})), alone) << ranks << mode;
  }
}

TEST(Training, IsIdenticalWithAdamWAndManyBuckets) {
  const Words adamw =
      with(kShort, {"--optimizer", "adamw", "--weight-decay", "0.01", "--hidden", "96,80,50"});
  const Curve alone = train(adamw);
  EXPECT_EQ(train(with(adamw, {"-g", "4", "--bucket-mib", "0.01"})), alone);
  EXPECT_EQ(train(with(adamw, {"-g", "8", "--mode", "sharded"})), alone);
}

TEST(Training, IsIdenticalForAnyNumberOfRanksWithClippedGradients) {
  const Words wild("--epochs 2 --batch 8 --micro-batch 1 --optimizer adamw --rate 0.02");
  const Curve alone = train(wild);
  EXPECT_EQ(train(with(wild, {"-g", "4", "--mode", "fast_ddp"})), alone);
  EXPECT_EQ(train(with(wild, {"-g", "8", "--mode", "sharded"})), alone);
}

TEST(Training, DependsOnItsSeed) {
  EXPECT_NE(train(with(kShort, {"--seed", "2"})).weights, train(kShort).weights);
}

TEST(Training, WithBfloat16GradientsIsCloseAndRepeatable) {
  const Words halves = with(kShort, {"-g", "4", "--gradients", "bfloat16"});
  const Curve curve = train(halves);
  EXPECT_EQ(curve, train(halves));
  EXPECT_NE(curve.weights, train(kShort).weights);
  EXPECT_NEAR(curve.losses.back(), train(kShort).losses.back(), 0.05);
}

TEST(Training, IsIdenticalUnderMpirun) {
  if (!hccl_perf::installed("mpirun")) GTEST_SKIP() << "needs mpirun";
  const Folder folder;
  Words words{"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4"};
  words = with(words, command(with(kShort, {"--json", folder.file("run.json")})));
  const Outcome outcome = Program(words).wait();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(curve_in(folder.file("run.json")), train(kShort));
}

TEST(Training, JoinsAtMasterAddr) {
  const Folder folder;
  const std::string port = std::to_string(20000 + getpid() % 10000);
  const auto variables = [&](const char* rank) {
    return Program::Variables{"MASTER_ADDR=127.0.0.1",
                              "MASTER_PORT=" + port,
                              "WORLD_SIZE=2",
                              std::string("RANK=") + rank,
                              std::string("LOCAL_RANK=") + rank,
                              "LOCAL_WORLD_SIZE=2"};
  };
  Program second(command(kShort), variables("1"));
  const Outcome first = run(with(kShort, {"--json", folder.file("run.json")}), variables("0"));
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(second.wait().status, 0);
  EXPECT_EQ(curve_in(folder.file("run.json")), train(kShort));
}

TEST(Training, RunsFromOneLauncherPerNode) {
  const Folder folder;
  const std::string port = std::to_string(20000 + getpid() % 10000);
  const auto variables = [&](const char* node) {
    return Program::Variables{"MASTER_ADDR=localhost", "MASTER_PORT=" + port, "WORLD_SIZE=4",
                              std::string("NODE_RANK=") + node};
  };
  Program second(command(with(kShort, {"-g", "2"})), variables("1"));
  const Outcome first =
      run(with(kShort, {"-g", "2", "--json", folder.file("run.json")}), variables("0"));
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.out.find("4 ranks"), std::string::npos) << first.out;
  const Outcome other = second.wait();
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_EQ(other.out, "");
  EXPECT_EQ(curve_in(folder.file("run.json")), train(kShort));
}

TEST(Training, TracesAllRanksOnOneClock) {
  const Folder folder;
  ASSERT_EQ(
      run({"-g", "3", "--batch", "96", "--epochs", "1", "--trace", folder.file("t.json")}).status,
      0);
  const auto trace = nlohmann::json::parse(contents_of(folder.file("t.json")));
  std::map<int, std::vector<std::pair<double, double>>> collectives;
  std::set<std::string> names;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    names.insert(event.at("name"));
    const double begin = event.at("ts");
    const double end = begin + event.at("dur").get<double>();
    EXPECT_GE(begin, 0);
    EXPECT_GE(end, begin);
    if (event.at("cat") == "collective") collectives[event.at("pid")].emplace_back(begin, end);
  }
  EXPECT_EQ(names, (std::set<std::string>{"clear gradients", "forward", "backward", "all-reduce",
                                          "update"}));
  ASSERT_EQ(collectives.size(), 3U);
  // No rank may end a collective before all ranks have begun it. All times are from the same clock.
  for (std::size_t i = 0; i < collectives[0].size(); ++i) {
    double last_begin = 0;
    double first_end = INFINITY;
    for (const auto& [rank, spans] : collectives) {
      last_begin = std::max(last_begin, spans.at(i).first);
      first_end = std::min(first_end, spans.at(i).second);
    }
    EXPECT_LE(last_begin, first_end) << "step " << i;
  }
}

}  // namespace
}  // namespace ddp_trainer
