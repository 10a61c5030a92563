// SPDX-License-Identifier: Apache-2.0
// Trainings that are interrupted, and input that is not right.
#include "trainer_runs.h"

#include <algorithm>
#include <fstream>

#include <signal.h>

namespace ddp_trainer {
namespace {

// The pid of a rank, from the children of the program in the order they were started.
pid_t rank_of(const Program& program, std::size_t rank) {
  const std::string path = "/proc/" + std::to_string(program.pid()) + "/task/" +
                           std::to_string(program.pid()) + "/children";
  std::ifstream children(path);
  std::vector<pid_t> all;
  for (pid_t child = 0; children >> child;) all.push_back(child);
  return all.at(rank);
}

TEST(Interruption, IsNamedByTheOthersAndTrainingGoesOn) {
  const Folder folder;
  const Words training{"-g", "4", "--epochs", "12", "--hidden", "64"};
  const Curve undisturbed = train(training);
  Words with_checkpoint = training;
  with_checkpoint.insert(with_checkpoint.end(), {"--checkpoint", folder.file("state")});
  Program program(command(with_checkpoint));
  ASSERT_TRUE(program.wait_for_output("epoch  3/12"));
  const pid_t victim = rank_of(program, 2);
  kill(victim, SIGKILL);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.status, 1);
  const std::string name = "rank 2 (pid " + std::to_string(victim);
  for (const char* survivor : {"0", "1", "3"}) {
    const std::size_t line = outcome.err.find(std::string("ddp_trainer: rank ") + survivor + ": ");
    ASSERT_NE(line, std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.substr(line, outcome.err.find('\n', line) - line).find(name),
              std::string::npos)
        << outcome.err;
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"state"});
  // With other ranks and in another mode, to the same bits.
  EXPECT_EQ(train({"-g", "2", "--mode", "sharded", "--epochs", "12", "--hidden", "64",
                   "--checkpoint", folder.file("state")}),
            undisturbed);
}

// One line that says `part`, and a status other than 0; nothing on stdout.
void expect_refused(const Words& arguments, const std::string& part,
                    const Program::Variables& variables = {}) {
  const Outcome outcome = run(arguments, variables);
  EXPECT_NE(outcome.status, 0) << part;
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("ddp_trainer: "), 0U) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(BadInput, OfTheCommandLineIsOneLine) {
  expect_refused({"--mode", "slow"}, "--mode");
  expect_refused({"-g", "9"}, "-g");
  expect_refused({"-g", "3"},
                 "a batch of 128 does not divide into micro-batches of 16 for 3 ranks");
  expect_refused({"--batch", "2048", "-g", "2"}, "more than the 1438 samples");
  expect_refused({"--json", "/nowhere/at/all"}, "--json");
  expect_refused({"--checkpoint", "/nowhere/at/all"}, "--checkpoint");
  expect_refused({"--hidden", "0"}, "--hidden");
  expect_refused({"--json", "/tmp/x", "--trace", "/tmp/./x"},
                 "--trace and --json both name /tmp/./x");
}

TEST(BadInput, OfTheEnvironmentIsOneLine) {
  const Program::Variables node{"WORLD_SIZE=4", "NODE_RANK=2"};
  expect_refused({}, "give -g N for the N ranks of this node", node);
  expect_refused({"-g", "2"}, "WORLD_SIZE=4 has no 2 ranks (-g) for NODE_RANK=2", node);
  expect_refused({"-g", "3"}, "WORLD_SIZE=4 has no 3 ranks", {"WORLD_SIZE=4", "NODE_RANK=0"});
  expect_refused({"-g", "1"}, "none is set", node);
  expect_refused({"-g", "1"}, "'x' is not a number from 0", {"WORLD_SIZE=4", "NODE_RANK=x"});
  expect_refused({"-g", "1"}, "at most 64 ranks", {"WORLD_SIZE=65", "NODE_RANK=0"});
}

TEST(BadInput, OfTheDataIsOneLine) {
  const Folder folder;
  expect_refused({"-g", "2", "--data", folder.file("none")}, "No such file");
  std::ofstream(folder.file("cut.gz"), std::ios::binary)
      << contents_of(TRAINER_DATA).substr(0, 9000);
  expect_refused({"-g", "2", "--data", folder.file("cut.gz")},
                 "cut.gz is damaged or truncated: unexpected end of file");
  std::ofstream(folder.file("narrow")) << "1,2,3\n";
  expect_refused({"-g", "2", "--data", folder.file("narrow")}, "line 1: has 3 columns");
}

TEST(BadInput, OfACheckpointIsOneLineAndLeavesItAsItIs) {
  const Folder folder;
  const std::string path = folder.file("state");
  ASSERT_EQ(run({"--epochs", "1", "--hidden", "32", "--checkpoint", path}).status, 0);
  const std::string before = contents_of(path);
  expect_refused({"--epochs", "2", "--hidden", "33", "--checkpoint", path},
                 "is of another training");
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
                 "its check sum is wrong");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"state"});
}

}  // namespace
}  // namespace ddp_trainer
