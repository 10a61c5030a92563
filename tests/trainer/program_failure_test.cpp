// SPDX-License-Identifier: Apache-2.0
// Tests interrupted training runs, and bad input.
#include "dataset.h"
#include "errors.h"
#include "support/text_parts.h"
#include "trainer_runs.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>

#include <signal.h>
#include <unistd.h>

namespace ddp_trainer {
namespace {

using hccl::test::expect_line;
using hccl::test::expect_parts;

// Returns the uncompressed data with one sample's class changed.
std::string digits_with_changed_class() {
  std::string all;
  const Dataset digits = read_digits(TRAINER_DATA);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    for (std::size_t pixel = 0; pixel < Dataset::kPixels; ++pixel)
      all += text(digits.sample(i)[pixel] * 16, ',');
    all += text(i == 0 ? 9 - digits.classes[i] : static_cast<int>(digits.classes[i]), '\n');
  }
  return all;
}

// Returns the pid of a rank. The kernel lists the program's children in the order in which they
// were started.
pid_t rank_of(const Program& program, std::size_t rank) {
  const std::string path = "/proc/" + std::to_string(program.pid()) + "/task/" +
                           std::to_string(program.pid()) + "/children";
  std::ifstream children(path);
  std::vector<pid_t> all;
  for (pid_t child = 0; children >> child;) all.push_back(child);
  return all.at(rank);
}

// Returns whether a process has exited. A zombie counts as exited.
bool has_ended(pid_t pid) {
  std::ifstream file(text("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end == std::string::npos || line.substr(name_end, 3) == ") Z";
}

class Interrupted : public testing::Test {
 protected:
  const Words training_{"-g", "4", "--epochs", "12", "--hidden", "64"};

  [[nodiscard]] Words with_checkpoint() const {
    Words words = training_;
    words.append({"--checkpoint", folder_.file("state")});
    return words;
  }

  Folder folder_;
};

class Interruption : public Interrupted, public testing::WithParamInterface<std::size_t> {};

TEST_P(Interruption, IsReportedByOtherRanksAndTrainingResumes) {
  const std::size_t rank = GetParam();
  Program program(command(with_checkpoint()));
  ASSERT_TRUE(program.wait_for_output("epoch  3/12"));
  const pid_t victim = rank_of(program, rank);
  kill(victim, SIGKILL);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.status, 1);
  const std::string name = text("rank ", rank, " (pid ", victim);
  for (std::size_t survivor = 0; survivor < 4; ++survivor) {
    if (survivor == rank) continue;
    const std::size_t line = outcome.err.find(text("ddp_trainer: rank ", survivor, ": "));
    ASSERT_NE(line, std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.substr(line, outcome.err.find('\n', line) - line).find(name),
              std::string::npos)
        << outcome.err;
  }
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"state"});
  // A training run that resumes with a different number of ranks and in a different mode must end
  // with the same bits.
  EXPECT_EQ(train(text("-g 2 --mode sharded --epochs 12 --hidden 64 --checkpoint ",
                       folder_.file("state"))),
            train(training_));
}

INSTANTIATE_TEST_SUITE_P(OfRank, Interruption, testing::Values(0U, 2U));

TEST_F(Interrupted, LauncherTerminatesAllRanks) {
  Program program(command(with_checkpoint()));
  ASSERT_TRUE(program.wait_for_output("epoch  3/12"));
  std::vector<pid_t> ranks;
  for (std::size_t rank = 0; rank < 4; ++rank) ranks.push_back(rank_of(program, rank));
  kill(program.pid(), SIGKILL);
  static_cast<void>(program.wait());
  for (const pid_t rank : ranks) {
    for (int tries = 0; tries < 10'000 && !has_ended(rank); ++tries) usleep(1000);
    EXPECT_TRUE(has_ended(rank));
  }
  std::vector<std::string> names = folder_.names();
  // Rank 0 may have been killed while it wrote the next checkpoint to a temporary file.
  std::erase_if(names, [](const std::string& name) { return name.starts_with("state.tmp."); });
  EXPECT_EQ(names, std::vector<std::string>{"state"});
}

// Runs two launchers, one per node, with one rank each.
std::array<Outcome, 2> run_two_nodes(const Words& first, const Words& second) {
  const std::string port = std::to_string(30000 + getpid() % 10000);
  const auto start = [&](const Words& arguments, const char* node) {
    Words words{"-g", "1", "--epochs", "3"};
    words.append(arguments);
    return std::make_unique<Program>(
        command(words), Program::Variables{"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port,
                                           "WORLD_SIZE=2", std::string("NODE_RANK=") + node});
  };
  const auto one = start(first, "0");
  const auto two = start(second, "1");
  return {one->wait(), two->wait()};
}

// Requires that both launchers print one error line that contains `part`.
void expect_both_refuse(const Words& first, const Words& second, const std::string& part) {
  for (const Outcome& outcome : run_two_nodes(first, second)) {
    EXPECT_NE(outcome.status, 0);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("ddp_trainer: rank 1 on "), 0U) << outcome.err;
    expect_line(outcome.err, {part});
  }
}

TEST(Ranks, WithDifferentSettingsDoNotTrain) {
  const Folder folder;
  const std::string state = folder.file("state");
  ASSERT_EQ(run({"--epochs", "1", "--checkpoint", state}).status, 0);
  const std::string before = contents_of(state);
  expect_both_refuse({"--checkpoint", state}, {"--checkpoint", folder.file("none")},
                     "starts after step 0, but rank 0 starts after step 11");
  expect_both_refuse({}, {"--seed", "2"}, "has different settings from rank 0");
  expect_both_refuse({}, {"--mode", "sharded"}, "mode sharded");
  std::ofstream(folder.file("data")) << digits_with_changed_class();
  expect_both_refuse({}, {"--data", folder.file("data")}, "reads different data from rank 0");
  expect_both_refuse({}, {"--data", folder.file("none")}, "none: No such file");
  EXPECT_EQ(contents_of(state), before);
}

// If one rank cannot read its data, the other rank must report the failure too.
TEST(Ranks, ReportThatOneCannotRead) {
  const std::string port = std::to_string(20000 + getpid() % 10000);
  const auto variables = [&](const char* rank) {
    return Program::Variables{"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "WORLD_SIZE=2",
                              std::string("RANK=") + rank};
  };
  Program second(command({"--data", "/nowhere/digits"}), variables("1"));
  const Outcome first = run({}, variables("0"));
  EXPECT_NE(first.status, 0);
  expect_parts(first.err, {"rank 1 on ", "/nowhere/digits: No such file"});
  EXPECT_NE(second.wait().status, 0);
}

TEST(Divergence, EndsTrainingWithoutACheckpoint) {
  const Folder folder;
  for (const char* mode : {"ddp", "sharded"}) {
    const Outcome outcome = run(text("-g 4 --rate 1e9 --mode ", mode, " --checkpoint ",
                                     folder.file("state"), " --json ", folder.file("run.json")));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err.find("ddp_trainer: the training diverged in epoch 1: "), 0U)
        << outcome.err;
    expect_line(outcome.err, {});
    EXPECT_EQ(outcome.out.find("final:"), std::string::npos);
    EXPECT_EQ(folder.names(), std::vector<std::string>{});
  }
}

// Requires one line on stderr that contains `part`, an empty stdout, and a status other than 0.
void expect_refused(const Words& arguments, const std::string& part,
                    const Program::Variables& variables = {}) {
  const Outcome outcome = run(arguments, variables);
  EXPECT_NE(outcome.status, 0) << part;
  EXPECT_EQ(outcome.out, "");
  expect_line(outcome.err, {part});
  EXPECT_EQ(outcome.err.find("ddp_trainer: "), 0U) << outcome.err;
}

TEST(BadInput, OnTheCommandLineIsReportedInOneLine) {
  expect_refused({"--mode", "slow"}, "--mode");
  expect_refused({"-g", "9"}, "-g");
  expect_refused({"-g", "3"},
                 "a batch of 128 does not divide into micro-batches of 16 for 3 ranks");
  expect_refused({"--batch", "2048", "-g", "2"}, "more than the 1438 training samples");
  expect_refused({"--json", "/nowhere/at/all"}, "--json");
  expect_refused({"--checkpoint", "/nowhere/at/all"}, "--checkpoint");
  expect_refused({"--hidden", "0"}, "--hidden");
  expect_refused({"--json", "/tmp/ddp_trainer.out", "--trace", "/tmp/./ddp_trainer.out"},
                 "--trace and --json both name /tmp/./ddp_trainer.out");
}

TEST(BadInput, InNumbersIsReportedInOneLine) {
  for (const char* option : {"--rate", "--momentum", "--weight-decay", "--bucket-mib", "--seed"}) {
    for (const char* value : {"nan", "inf", "-1", "1e99", "", "1x"})
      expect_refused({option, value}, option);
  }
  expect_refused({"--rate", "1e-50"}, "--rate");
  expect_refused({"--seed", "99999999999999999999"}, "--seed");
  expect_refused({"--hidden", "1,,2"}, "'1,,2' is not a list of widths");
  for (const char* option : {"--json", "--trace", "--checkpoint", "--data"})
    expect_refused({option, ""}, std::string(option) + " names no file");
}

TEST(BadInput, InTheEnvironmentIsReportedInOneLine) {
  const Program::Variables node{"WORLD_SIZE=4", "NODE_RANK=2"};
  expect_refused({}, "give -g N for the N ranks of this node", node);
  expect_refused({"-g", "2"}, "WORLD_SIZE=4 does not fit -g 2 and NODE_RANK=2", node);
  expect_refused({"-g", "3"}, "WORLD_SIZE=4 does not fit -g 3", {"WORLD_SIZE=4", "NODE_RANK=0"});
  expect_refused({"-g", "1"}, "need an address at which to meet", node);
  expect_refused({}, "MASTER_PORT='99999' is not a number from 1 to 65535",
                 {"WORLD_SIZE=2", "RANK=0", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=99999"});
  expect_refused({"-g", "1"}, "'x' is not a number from 0", {"WORLD_SIZE=4", "NODE_RANK=x"});
  expect_refused({"-g", "1"}, "not a number from 1 to 4096", {"WORLD_SIZE=4097", "NODE_RANK=0"});
}

TEST(BadInput, InTheDataIsReportedInOneLine) {
  const Folder folder;
  expect_refused({"-g", "2", "--data", folder.file("none")}, "No such file");
  std::ofstream(folder.file("cut.gz"), std::ios::binary)
      << contents_of(TRAINER_DATA).substr(0, 9000);
  expect_refused({"-g", "2", "--data", folder.file("cut.gz")},
                 "cut.gz is damaged or truncated: unexpected end of file");
  std::ofstream(folder.file("narrow")) << "1,2,3\n";
  expect_refused({"-g", "2", "--data", folder.file("narrow")}, "line 1: has 3 columns");
}

TEST(BadOutput, IsReportedInOneLine) {
  for (const char* file : {"--json", "--trace"}) {
    const Outcome outcome = run({"-g", "2", "--epochs", "1", file, "/dev/full"});
    EXPECT_EQ(outcome.status, 1);
    expect_parts(outcome.err, {file, "No space left"});
  }
  const Outcome outcome =
      Program({"sh", "-c", command({})[0] + " -g 4 --epochs 1 > /dev/full"}).wait();
  EXPECT_EQ(outcome.status, 1);
  expect_line(outcome.err, {"cannot write to standard output: No space left"});
}

TEST(BadInput, InACheckpointIsReportedAndLeavesItUnchanged) {
  const Folder folder;
  expect_refused({"--checkpoint", "/dev/full"}, "checkpoint /dev/full is not a regular file");
  const std::string path = folder.file("state");
  ASSERT_EQ(run({"--epochs", "1", "--hidden", "32", "--checkpoint", path}).status, 0);
  const std::string before = contents_of(path);
  expect_refused({"--epochs", "2", "--hidden", "33", "--checkpoint", path},
                 "belongs to a different training run");
  std::ofstream(folder.file("data")) << digits_with_changed_class();
  expect_refused(
      {"--epochs", "2", "--hidden", "32", "--checkpoint", path, "--data", folder.file("data")},
      "belongs to a training run with different data");
  std::filesystem::remove(folder.file("data"));
  EXPECT_EQ(contents_of(path), before);
  for (const std::size_t kept :
       {std::size_t{0}, std::size_t{10}, std::size_t{100}, before.size() / 2, before.size() - 1}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << before.substr(0, kept);
    expect_refused({"--epochs", "2", "--hidden", "32", "--checkpoint", path}, "checkpoint ");
  }
  std::string damaged = before;
  damaged[damaged.size() - 100] = static_cast<char>(damaged[damaged.size() - 100] ^ 1);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
  expect_refused({"--epochs", "2", "--hidden", "32", "--checkpoint", path},
                 "its checksum is wrong");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"state"});
}

}  // namespace
}  // namespace ddp_trainer
