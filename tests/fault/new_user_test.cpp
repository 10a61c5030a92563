// SPDX-License-Identifier: Apache-2.0
// Tests typical mistakes of a program that prints only codes. For each mistake, stderr must name
// the culprit, the remedy and, if a call fails, that call.
#include "check.h"
#include "children.h"

#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl::test {
namespace {

struct Mistake {
  const char* name;
  const char* function;
  const char* culprit;
  const char* remedy;
  const char* variable = nullptr;  // "NAME=value"
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

constexpr const char* kSync = "synStreamSynchronize failed: synFailHccl (40)";
constexpr const char* kSameCalls = "every rank must make the same calls";
constexpr const char* kJoin = "hcclCommInitRank failed: ";

constexpr std::array kMistakes{
    Mistake{"wrong_count", kSync, "rank 1 all_reduce(1001, float, sum) but rank 0 all_reduce(1000,",
            kSameCalls},
    Mistake{"wrong_type", kSync, "rank 1 all_reduce(1000, int32, sum) but rank 0 all_reduce(1000,",
            kSameCalls},
    Mistake{"wrong_root", kSync, "rank 1 broadcast(1000, float, root 1) but rank 0 broadcast",
            kSameCalls},
    Mistake{"root_out_of_range", "hcclBroadcast failed: ", "root is 5 in a communicator of size 1",
            "pass 0 to 0"},
    Mistake{"no_reduction", "hcclAllReduce failed: ", "reduceOp 5", "pass hcclSum"},
    Mistake{"garbage_pointer", "hcclAllReduce failed: ", "sendbuff 0x10", "synDeviceMalloc"},
    Mistake{"null_buffers", "hcclAllReduce failed: ", "sendbuff is null", "pass device or host"},
    Mistake{"overlapping_buffers", "hcclAllReduce failed: ", "sendbuff and recvbuff overlap",
            "use separate buffers"},
    Mistake{"freed_buffer", "hcclAllReduce failed: ", "is not in allocated device memory",
            "pass an address from synDeviceMalloc"},
    Mistake{"freed_twice", "synDeviceFree failed: ", "not the start of an allocation", "once"},
    Mistake{"stream_of_another_device", "hcclAllReduce failed: ",
            "the stream belongs to device 0, but the communicator belongs to device 1",
            "pass a stream of device 1"},
    Mistake{"destroyed_stream", "hcclAllReduce failed: ", "unknown stream",
            "pass one that synStreamCreateGeneric returned"},
    Mistake{"destroyed_communicator", "hcclAllReduce failed: ", "unknown communicator",
            "pass one that hcclCommInitRank returned"},
    Mistake{"rank_out_of_range", kJoin, "rank is 2, but nranks is 2", "pass 0 to 1"},
    Mistake{"sizes_differ", kJoin, "the ranks disagree on the size of the communicator: rank",
            "start every rank with the same size"},
    Mistake{"rank_claimed_twice", kJoin, "rank 0 is already taken by pid",
            "give every process a rank of its own", "HCCL_INIT_TIMEOUT=1"},
    Mistake{"id_of_an_earlier_run", kJoin, "the process that made the unique id has exited",
            "make a new id"},
    Mistake{"missing_rank", kJoin, "rank 1 has not joined", "start every missing rank",
            "HCCL_INIT_TIMEOUT=1"},
    Mistake{"forgotten_group_end", "hcclCommDestroy was called while",
            "this thread has an open group", "call hcclGroupEnd first", "HCCL_TIMEOUT=1"},
    Mistake{"group_end_without_start", "hcclGroupEnd failed: ", "without hcclGroupStart",
            "call both the same number of times"},
    Mistake{"send_without_receive", kSync, "rank 1 (pid", "has not made the matching call",
            "HCCL_TIMEOUT=1"},
    Mistake{"late_rank", kSync, "rank 1 (pid", "has not made this call", "HCCL_TIMEOUT=1"},
    Mistake{"killed_peer", kSync, "rank 1 (pid", "look at its output"},
    Mistake{"initialized_twice", "synInitialize failed: ", "was called before", "call it once",
            "HABANA_DISABLE_DOUBLE_SYN_INITIALIZE=1"},
    Mistake{"not_initialized", "synDeviceAcquire failed: ", "synUninitialized",
            "call synInitialize first"},
    Mistake{"no_device", kJoin, "no device", "synDeviceAcquire first"},
    Mistake{"bad_value", "synInitialize failed: ", "HCCL_TIMEOUT=\"soon\"",
            "set it to a number of seconds", "HCCL_TIMEOUT=soon"},
    Mistake{"misspelt_variable", "config: ", "HCCL_TIMOUT", "see docs/reference/environment.md",
            "HCCL_TIMOUT=5"},
    Mistake{"unknown_algorithm", "synInitialize failed: synInvalidArgument (1)",
            "HCCL_ALGO=\"fastest\"", "set it to one of ring, tree", "HCCL_ALGO=fastest"},
    Mistake{"held_device", "synDeviceAcquireByModuleId failed: synUnavailable (24)",
            "module 3 is held by pid ", "(new_user); release the module in that process"},
    Mistake{"copy_out_of_range", "synMemCopyAsync failed: ", "exceeds allocation",
            "check the count"},
    Mistake{"copy_to_nowhere", "synStreamSynchronize failed: synFail (26)", "host address 0x10",
            "pass memory of this process"},
    Mistake{"compute_graph", "synGraphCreate failed: synUnsupported (18)", "is not available",
            "do without it"},
};

struct Output {
  std::string codes;  // stdout
  std::string stderr_text;
};

std::string contents_of(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> buffer{};
  for (std::size_t length = 0; (length = std::fread(buffer.data(), 1, buffer.size(), file)) > 0;)
    text.append(buffer.data(), length);
  std::fclose(file);
  return text;
}

// Returns this process's environment without its HCCL_ and LOG_LEVEL variables, but with the
// loopback interface, with a node id that only these tests use, and with `variable` unless it is
// null.
std::vector<std::string> environment_of(const char* variable) {
  std::vector<std::string> chosen{"HCCL_SOCKET_IFNAME=lo", "HCCL_NODE_ID=new-user"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string assignment(*entry);
    if (assignment.find("HCCL_") != 0 && assignment.find("LOG_LEVEL") != 0)
      chosen.push_back(assignment);
  }
  if (variable != nullptr) chosen.emplace_back(variable);
  return chosen;
}

Output run_program(const char* argument, const char* variable) {
  std::FILE* const out = std::tmpfile();
  std::FILE* const err = std::tmpfile();
  std::vector<std::string> environment = environment_of(variable);
  const int status = status_in_child([&] {
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    std::vector<char*> pointers;
    pointers.reserve(environment.size() + 1);
    for (std::string& assignment : environment) pointers.push_back(assignment.data());
    pointers.push_back(nullptr);
    execle(HCCL_NEW_USER_PROGRAM, "new_user", argument, nullptr, pointers.data());
    return 127;
  });
  EXPECT_EQ(status, 0);
  return {contents_of(out), contents_of(err)};
}

class NewUser : public testing::TestWithParam<Mistake> {};

TEST_P(NewUser, IsToldTheRemedyOnStderr) {
  const Mistake& mistake = GetParam();
  const Output output = run_program(mistake.name, mistake.variable);
  for (const char* part : {mistake.function, mistake.culprit, mistake.remedy})
    EXPECT_TRUE(contains(output.stderr_text, part)) << "lacks: " << part << "\nstderr:\n"
                                                    << output.stderr_text << "codes:\n"
                                                    << output.codes;
}

std::string name_of(const testing::TestParamInfo<Mistake>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(Mistakes, NewUser, testing::ValuesIn(kMistakes), name_of);

TEST(NewUserProgram, MistakesAreAllTested) {
  std::set<std::string> tested;
  for (const Mistake& mistake : kMistakes) tested.insert(mistake.name);
  std::set<std::string> made;
  std::istringstream list(run_program("--list", nullptr).codes);
  for (std::string name; std::getline(list, name);) made.insert(name);
  EXPECT_EQ(made, tested);
}

}  // namespace
}  // namespace hccl::test
