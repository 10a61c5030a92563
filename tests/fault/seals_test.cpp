// SPDX-License-Identifier: Apache-2.0
// Tests that ranks refuse shared memory that its owner could still shrink, because an access beyond
// the new end would raise SIGBUS.
#include "faults.h"

#include <atomic>
#include <cstdarg>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

std::atomic<bool> leaves_unsealed{false};

}  // namespace

// Replaces the fcntl() that the library calls, so that a rank can claim to have sealed a file
// without doing so.
extern "C" int interposed_fcntl(int fd, int command, ...) __asm__("fcntl");
int interposed_fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  const long argument = va_arg(rest, long);
  va_end(rest);
  if (command == F_ADD_SEALS && leaves_unsealed) return 0;
  return static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
}

namespace hccl::test {
namespace {

constexpr const char* kRefusal = "sent shared memory that it can still resize";

// Requires that joining fails on this rank with an error that names the culprit.
void expect_refusal(const World& world, int culprit) {
  const hcclUniqueId id = share_id(world);
  hcclComm_t communicator = nullptr;
  const hcclResult_t result = hcclCommInitRank(&communicator, world.size, id, world.rank);
  expect_code(result, hcclSystemError);
  const std::string message = last_hccl_message();
  require(contains(message, kRefusal), join("joining failed with a different error: ", message));
  require(names_rank(message, culprit), join("does not name rank ", culprit, ": ", message));
}

RankFunction device_memory(int culprit) {
  return [culprit](World& world) {
    leaves_unsealed = world.rank == culprit;
    Session session(world);
    leaves_unsealed = false;
    expect_refusal(world, culprit);
  };
}

// Makes rank 0, which creates the node's control block, leave it unsealed.
void control_block(World& world) {
  Session session(world);
  leaves_unsealed = world.rank == 0;
  expect_refusal(world, 0);
}

// Makes rank 1, which creates a stream's rings, leave them unsealed.
void rings(World& world) {
  Session session(world);
  const Group group = session.join_all();
  synStreamHandle stream = session.make_stream();
  leaves_unsealed = world.rank == 1;
  Operation operation = all_reduce_of(1000);
  OperationRun run(session, group, operation);
  succeed(run.queue(stream));
  expect_code(synStreamSynchronize(stream), synFailHccl);
  if (world.rank == 0) {
    const std::string message = async_message(group.handle);
    require(contains(message, kRefusal) && names_rank(message, 1), message);
  }
  session.forget_communicators();
  succeed(hcclCommDestroy(group.handle));
}

TEST(Seals, OfDeviceMemoryAreRequired) {
  for (const int culprit : {0, 2})
    EXPECT_EQ(failures(run_ranks(3, device_memory(culprit))), "") << culprit;
}

TEST(Seals, OfTheControlBlockAreRequired) { EXPECT_EQ(failures(run_ranks(3, control_block)), ""); }

TEST(Seals, OfRingsAreRequired) {
  const RankOptions options{.environment = {{"HCCL_TRANSPORT", "shm"}}};
  EXPECT_EQ(failures(run_ranks(2, rings, options)), "");
}

}  // namespace
}  // namespace hccl::test
