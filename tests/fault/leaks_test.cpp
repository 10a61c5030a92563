// SPDX-License-Identifier: Apache-2.0
// Tests that destroyed communicators leave no memory, descriptor, thread or mapping behind.
#include "faults.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include <gtest/gtest.h>
#include <malloc.h>

namespace hccl::test {
namespace {

// The resources that this process holds.
struct Holdings {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t mappings = 0;
  std::size_t heap_bytes = 0;      // 0 if a sanitizer replaces the allocator
  std::size_t resident_bytes = 0;  // anonymous memory only
};

std::size_t entries(const char* directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory),
                                                std::filesystem::directory_iterator()));
}

Holdings holdings() {
  Holdings now{.descriptors = entries("/proc/self/fd"), .threads = entries("/proc/self/task")};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++now.mappings;
  if (!sanitized()) now.heap_bytes = mallinfo2().uordblks;
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    if (key == "RssAnon:") status >> now.resident_bytes;
  }
  now.resident_bytes *= 1024;
  return now;
}

// Returns an id that rank 0 creates and broadcasts over the communicator `control`.
hcclUniqueId next_id(const Group& control, synStreamHandle stream) {
  hcclUniqueId id{};
  if (control.rank == 0) succeed(hcclGetUniqueId(&id));
  succeed(hcclBroadcast(&id, &id, sizeof id, hcclUint8, 0, control.handle, stream));
  succeed(synStreamSynchronize(stream));
  return id;
}

// Creates a communicator, runs small and large collectives and messages on a new stream, in device
// and host memory, and destroys or aborts the communicator.
void run_lifecycle(const Session& session, const Group& control, synStreamHandle stream,
                   int round) {
  constexpr std::size_t kCount = 70'000;
  hcclComm_t communicator = nullptr;
  const hcclUniqueId id = next_id(control, stream);
  succeed(hcclCommInitRank(&communicator, control.size(), id, control.rank));
  synStreamHandle own = nullptr;
  succeed(synStreamCreateGeneric(&own, session.device(), 0));
  const DeviceMemory memory(session.device(), kCount * 4);
  std::vector<float> host(kCount, 1);
  void* const device = memory.pointer();
  const int peer = (control.rank + 1) % control.size();
  for (const std::size_t count : {std::size_t{3}, kCount}) {
    succeed(hcclAllReduce(device, device, count, hcclFloat32, hcclMax, communicator, own));
    succeed(
        hcclAllReduce(host.data(), host.data(), count, hcclFloat32, hcclMax, communicator, own));
    succeed(hcclGroupStart());
    succeed(hcclSend(host.data(), count, hcclFloat32, peer, communicator, own));
    succeed(hcclRecv(device, count, hcclFloat32,
                     (control.rank + control.size() - 1) % control.size(), communicator, own));
    succeed(hcclGroupEnd());
  }
  succeed(synStreamSynchronize(own));
  const bool leaves_calls = round % 6 == 3;
  if (leaves_calls) {  // only the abort ends these calls
    for (int call = 0; call < 3; ++call)
      succeed(hcclRecv(device, 3, hcclFloat32, peer, communicator, own));
  }
  // Wait first: an abort would also fail operations that another rank has not completed.
  succeed(hcclBarrier(control.handle, stream));
  succeed(synStreamSynchronize(stream));
  if (round % 2 == 0) succeed(synStreamDestroy(own));
  succeed(round % 3 == 0 ? hcclCommAbort(communicator) : hcclCommDestroy(communicator));
  if (leaves_calls)
    require_equal(synStreamSynchronize(own), synFailHccl, "calls left in the queue");
  if (round % 2 != 0) succeed(synStreamDestroy(own));
}

RankFunction create_and_destroy(int rounds) {
  return [rounds](World& world) {
    constexpr int kWarmUp = 30;
    Session session(world);
    const Group control = session.join_all();
    synStreamHandle stream = session.make_stream();
    Holdings before;
    for (int round = 0; round < rounds + kWarmUp; ++round) {
      if (round == kWarmUp) before = holdings();
      run_lifecycle(session, control, stream, round);
    }
    // The control thread may still be closing the last communicator's descriptors.
    Holdings after = holdings();
    for (int look = 0; look < 1000 && after.descriptors > before.descriptors; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      after = holdings();
    }
    require(after.descriptors <= before.descriptors,
            join(before.descriptors, " descriptors became ", after.descriptors));
    require(after.threads <= before.threads,
            join(before.threads, " threads became ", after.threads));
    require(after.mappings <= before.mappings + 8,
            join(before.mappings, " mappings became ", after.mappings));
    require(after.heap_bytes <= before.heap_bytes + (64U << 10),
            join("the heap grew by ", after.heap_bytes - before.heap_bytes, " bytes"));
    require(
        sanitized() || after.resident_bytes <= before.resident_bytes + (1U << 20),
        join("resident memory grew by ", after.resident_bytes - before.resident_bytes, " bytes"));
    world.report(join("descriptors ", before.descriptors, " -> ", after.descriptors, ", threads ",
                      before.threads, " -> ", after.threads, ", mappings ", before.mappings, " -> ",
                      after.mappings, ", heap ", before.heap_bytes, " -> ", after.heap_bytes,
                      ", resident ", before.resident_bytes, " -> ", after.resident_bytes));
    session.finish();
  };
}

TEST(Leaks, DoNotOccurWhenCommunicatorsComeAndGo) {
  const int rounds = scaled(200);
  const RankOptions options{.seconds = 280};
  const auto outcomes = run_ranks(2, create_and_destroy(rounds), options);
  EXPECT_EQ(failures(outcomes), "");
  for (const RankOutcome& outcome : outcomes) {
    for (const std::string& report : outcome.reports)
      std::cout << rounds << " communicators: " << report << '\n';
  }
}

}  // namespace
}  // namespace hccl::test
