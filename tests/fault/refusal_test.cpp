// SPDX-License-Identifier: Apache-2.0
// Tests that the library refuses wrong calls: among others, calls with malformed environment
// variables, in forked children, with buffers that exceed their allocation and with bad arguments.
#include "children.h"
#include "faults.h"
#include "rank_test.h"

#include <functional>
#include <iomanip>
#include <ostream>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace hccl::test {
namespace {

struct Variable {
  const char* name;
  const char* value;
};

// Prints the parameter for ctest.
void PrintTo(const Variable& value, std::ostream* out) { *out << value.value; }

class Environment : public testing::TestWithParam<Variable> {};

TEST_P(Environment, ErrorNamesTheMalformedVariable) {
  const auto [name, value] = GetParam();
  const RankOptions options{.environment = {{name, value}}};
  const auto refused = [name = name](World&) {
    expect_code(synInitialize(), synInvalidArgument, name);
    hcclUniqueId id{};
    expect_code(hcclGetUniqueId(&id), hcclInvalidArgument, name);
  };
  EXPECT_EQ(failures(run_ranks(1, refused, options)), "");
}

std::string name_of_variable(const testing::TestParamInfo<Variable>& info) {
  return join(info.param.name, "_", info.index);
}

INSTANTIATE_TEST_SUITE_P(
    Values, Environment,
    testing::Values(Variable{"HCCL_TIMEOUT", "soon"}, Variable{"HCCL_INIT_TIMEOUT", "-1"},
                    Variable{"HCCL_HANG_REPORT", "1s"}, Variable{"HCCL_DEVICE_MEMORY", "lots"},
                    Variable{"HCCL_DEVICE_COUNT", "0"}, Variable{"HCCL_DEVICE_TYPE", "gaudi9"},
                    Variable{"HCCL_STRICT", "maybe"}, Variable{"HCCL_DEBUG", "LOUD"},
                    Variable{"LOG_LEVEL_HCL", "7"}, Variable{"HCCL_COMM_ID", "localhost"},
                    Variable{"HCCL_SOCKET_IFNAME", "eth0,,"}, Variable{"HCCL_IB_HCA", "rxe0:"},
                    Variable{"HCCL_IB_GID_INDEX", "256"}, Variable{"HCCL_ALGO", "rign"},
                    Variable{"HCCL_TRANSPORT", "tpc"}),
    name_of_variable);

TEST(ForcedName, SetOnOneRankOfANodeFailsInitialisationOnAll) {
  for (const auto& [name, value] :
       {Variable{"HCCL_ALGO", "ring"}, Variable{"HCCL_TRANSPORT", "tcp"}}) {
    const auto refused = [name = name, value = value](World& world) {
      if (world.rank == 1) setenv(name, value, 1);
      Session session(world);
      hcclUniqueId id{};
      if (world.rank == 0) {
        succeed(hcclGetUniqueId(&id));
        world.board->publish_id(0, id);
      }
      hcclComm_t communicator = nullptr;
      expect_code(hcclCommInitRank(&communicator, world.size, world.board->await_id(0), world.rank),
                  hcclInvalidUsage, join("set the same ", name, " on all ranks"));
      session.finish();
    };
    EXPECT_EQ(failures(run_ranks(3, refused)), "");
  }
}

TEST(ForcedName, StoredWithoutBeingKnownIsRefused) {
  const auto refused = [](World&) {
    for (const char* name : {"HCCL_ALGO", "HCCL_TRANSPORT"})
      expect_code(synConfigurationSet(name, "rign"), synInvalidArgument, name);
    succeed(synInitialize());
  };
  EXPECT_EQ(failures(run_ranks(1, refused)), "");
}

using Call = std::pair<const char*, std::function<int()>>;

// Returns calls, each with its name, that a forked child could make with inherited handles.
std::vector<Call> hccl_calls(hcclComm_t communicator, synStreamHandle stream, void* buffer) {
  static hcclUniqueId id{};
  static hcclComm_t made = nullptr;
  static int number = 0;
  static hcclResult_t code = hcclSuccess;
  return {
      {"GetUniqueId", [] { return hcclGetUniqueId(&id); }},
      {"CommInitRank", [] { return hcclCommInitRank(&made, 1, id, 0); }},
      {"CommCount", [=] { return hcclCommCount(communicator, &number); }},
      {"CommUserRank", [=] { return hcclCommUserRank(communicator, &number); }},
      {"CommGetAsyncError", [=] { return hcclCommGetAsyncError(communicator, &code); }},
      {"CommFinalize", [=] { return hcclCommFinalize(communicator); }},
      {"CommDestroy", [=] { return hcclCommDestroy(communicator); }},
      {"CommAbort", [=] { return hcclCommAbort(communicator); }},
      {"Barrier", [=] { return hcclBarrier(communicator, stream); }},
      {"AllReduce",
       [=] {
         return hcclAllReduce(buffer, buffer, 1, hcclFloat32, hcclSum, communicator, stream);
       }},
  };
}

std::vector<Call> syn_calls(synDeviceId device, synStreamHandle stream) {
  static synDeviceId made = 0;
  static std::uint64_t address = 0;
  return {
      {"Initialize", [] { return synInitialize(); }},
      {"DeviceAcquire", [] { return synDeviceAcquire(&made, nullptr); }},
      {"DeviceMalloc", [=] { return synDeviceMalloc(device, 4096, 0, 0, &address); }},
      {"StreamSynchronize", [=] { return synStreamSynchronize(stream); }},
      {"StreamDestroy", [=] { return synStreamDestroy(stream); }},
      {"DeviceRelease", [=] { return synDeviceRelease(device); }},
  };
}

void forks(World& world) {
  Session session(world);
  const Group group = session.join_all();
  synStreamHandle stream = session.make_stream();
  const DeviceMemory memory(session.device(), 64);
  const int status = status_in_child([&] {
    int wrong = 0;
    for (const auto& [name, call] : hccl_calls(group.handle, stream, memory.pointer())) {
      const int result = call();
      if (result == hcclInvalidUsage) continue;
      world.report(join("hccl", name, " returned ", result, " in a forked child"));
      ++wrong;
    }
    for (const auto& [name, call] : syn_calls(session.device(), stream)) {
      if (call() != synSuccess) continue;
      world.report(join("syn", name, " succeeded in a forked child"));
      ++wrong;
    }
    return wrong;
  });
  run_and_verify(session, group, stream, all_reduce_of(100'000));
  session.finish();
  require_equal(status, 0, "the child's status");
}

TEST(Fork, RefusesTheChildAndSparesTheParent) {
  const auto outcomes = run_ranks(2, forks);
  EXPECT_EQ(failures(outcomes), "");
  for (const RankOutcome& outcome : outcomes) {
    for (const std::string& report : outcome.reports) ADD_FAILURE() << report;
  }
}

std::string hexadecimal(std::uint64_t address) { return join("0x", std::hex, address); }

void expect_named(const std::string& message, const DeviceMemory& memory) {
  require(contains(message, hexadecimal(memory.address())), join("no address: ", message));
  require(contains(message, std::to_string(memory.size())), join("no size: ", message));
}

RANK_TEST(Ranges, OutsideAnAllocationAreRefusedWithAddressAndSize, 2) {
  const DeviceMemory small(session.device(), 1000);
  const DeviceMemory large(session.device(), 4096);
  const auto refused = [&](hcclResult_t result, const DeviceMemory& memory) {
    expect_code(result, hcclInvalidArgument);
    expect_named(last_hccl_message(), memory);
  };
  void* at = small.pointer();
  void* enough = large.pointer();
  refused(hcclAllReduce(enough, at, 251, hcclFloat32, hcclSum, group.handle, stream), small);
  refused(hcclAllReduce(at, enough, 251, hcclFloat32, hcclSum, group.handle, stream), small);
  refused(hcclAllGather(enough, device_pointer(small.address() + 996), 1, hcclFloat32, group.handle,
                        stream),
          small);
  refused(hcclReduceScatter(at, enough, 126, hcclFloat32, hcclMax, group.handle, stream), small);
  std::vector<std::byte> host(2000);
  expect_code(
      synMemCopyAsync(stream, host_address(host.data()), 1001, small.address(), HOST_TO_DRAM),
      synInvalidArgument);
  expect_named(last_syn_message(), small);
  void* const gone = mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(static_cast<std::byte*>(gone) + 4096, 4096);
  for (const void* nowhere :
       {static_cast<const void*>(nullptr), static_cast<const void*>(device_pointer(4096)),
        static_cast<const void*>(static_cast<std::byte*>(gone) + 4096 - 4)}) {
    expect_code(hcclAllReduce(nowhere, enough, 2, hcclFloat32, hcclSum, group.handle, stream),
                hcclInvalidArgument, "sendbuff");
  }

  // Refused calls must not count as operations: the ranks' next calls must match.
  world.board->barrier(0, world.size);
  run_and_verify(session, group, stream, all_reduce_of(1000));
}

RANK_TEST(Arguments, AreCheckedBeforeAnythingIsQueued, 2) {
  const DeviceMemory memory(session.device(), 4096);
  void* buffer = memory.pointer();
  const auto invalid = [](hcclResult_t result, const char* what) {
    expect_code(result, hcclInvalidArgument);
    require(hcclGetLastErrorMessage() != nullptr, what);
  };
  int stray = 0;
  invalid(hcclAllReduce(buffer, buffer, 1, hcclNumTypes, hcclSum, group.handle, stream), "type");
  invalid(hcclAllReduce(buffer, buffer, 1, hcclFloat32, hcclOpNone, group.handle, stream), "op");
  for (const int number : {6, 63, 67, 320, -1}) {  // 320 has the low byte of hcclEmulationBitAnd
    invalid(hcclAllReduce(buffer, buffer, 1, hcclInt32, static_cast<hcclRedOp_t>(number),
                          group.handle, stream),
            "op");
  }
  for (const hcclDataType_t type : {hcclFloat32, hcclFloat64, hcclFloat16, hcclBfloat16}) {
    for (const hcclRedOp_t operation : kBitReductions) {
      invalid(hcclAllReduce(buffer, buffer, 1, type, operation, group.handle, stream), "op");
      require(contains(last_hccl_message(), name_of(operation)), last_hccl_message());
      require(contains(last_hccl_message(), name_of(type)), last_hccl_message());
    }
  }
  invalid(hcclAllReduce(buffer, buffer, 1, hcclFloat32, hcclSum, nullptr, stream), "communicator");
  invalid(hcclAllReduce(buffer, buffer, 1, hcclFloat32, hcclSum, &stray, stream), "communicator");
  invalid(hcclAllReduce(nullptr, buffer, 1, hcclFloat32, hcclSum, group.handle, stream), "send");
  invalid(hcclBroadcast(buffer, buffer, 1, hcclFloat32, world.size, group.handle, stream), "root");
  invalid(hcclBroadcast(buffer, buffer, 1, hcclFloat32, -1, group.handle, stream), "root");
  invalid(hcclAllReduce(buffer, device_pointer(memory.address() + 4), 10, hcclFloat32, hcclSum,
                        group.handle, stream),
          "overlap");
  const hcclResult_t no_stream =
      hcclAllReduce(buffer, buffer, 1, hcclFloat32, hcclSum, group.handle, nullptr);
  require(no_stream == hcclInvalidArgument || no_stream == hcclInvalidUsage, "no stream");
  hcclComm_t made = nullptr;
  invalid(hcclCommInitRank(&made, 2, hcclUniqueId{}, 0), "a zeroed id");
  hcclUniqueId id{};
  succeed(hcclGetUniqueId(&id));
  require(hcclGetLastErrorMessage() == nullptr, "success clears the text");
  invalid(hcclCommInitRank(nullptr, 1, id, 0), "no handle");
  invalid(hcclCommInitRank(&made, 0, id, 0), "no ranks");
  invalid(hcclCommInitRank(&made, 2, id, 2), "rank out of range");
}

RANK_TEST(Handles, OfTheWrongKindAreRefused, 1) {
  synEventHandle event = session.make_event();
  const DeviceMemory memory(session.device(), 64);
  void* buffer = memory.pointer();
  const auto all_reduce = [&](hcclComm_t communicator, void* on) {
    return hcclAllReduce(buffer, buffer, 4, hcclFloat32, hcclSum, communicator, on);
  };
  expect_code(all_reduce(group.handle, group.handle), hcclInvalidArgument);
  expect_code(all_reduce(reinterpret_cast<hcclComm_t>(stream), stream), hcclInvalidArgument);
  require(synEventRecord(event, reinterpret_cast<synStreamHandle>(event)) != synSuccess,
          "an event is not a stream");
  succeed(all_reduce(group.handle, stream));
  succeed(synStreamSynchronize(stream));
}

RANK_TEST(Memset, RefusesOverflowingSizes, 1) {
  const DeviceMemory memory(session.device(), 4096);
  for (const std::size_t elements : {std::size_t{1} << 62, (std::size_t{1} << 62) + 1}) {
    expect_code(synMemsetD32Async(memory.address(), 1, elements, stream), synInvalidArgument);
  }
}

// Under HCCL_STRICT=1, calls that Gaudi's library refuses must be refused, and all-reduces with the
// types and reductions that it supports must work.
RANK_TEST(StrictMode, RefusesWhatGaudisLibraryRefuses, 2,
          RankOptions{.environment = {{"HCCL_STRICT", "1"}}}) {
  const DeviceMemory memory(session.device(), 4096);
  void* buffer = memory.pointer();
  const auto reduce = [&](hcclDataType_t type, hcclRedOp_t operation) {
    return hcclAllReduce(buffer, buffer, 8, type, operation, group.handle, stream);
  };
  const auto expect = [](hcclResult_t got, hcclResult_t wanted) {
    expect_code(got, wanted, "HCCL_STRICT");
  };
  for (const hcclDataType_t type : {hcclInt8, hcclUint8, hcclInt64, hcclUint64, hcclFloat64}) {
    expect(reduce(type, hcclSum), hcclInvalidArgument);
    expect(hcclSend(buffer, 8, type, 0, group.handle, stream), hcclInvalidArgument);
  }
  for (const hcclRedOp_t operation : {hcclProd, hcclAvg})
    expect(reduce(hcclFloat32, operation), hcclInvalidArgument);
  for (const hcclRedOp_t operation : kBitReductions)
    expect(reduce(hcclInt32, operation), hcclInvalidArgument);
  expect(hcclBarrier(group.handle, stream), hcclUnsupported);
  expect(hcclAlltoAll(buffer, buffer, 8, hcclFloat32, group.handle, stream), hcclInvalidArgument);
  synDeviceId second = 0;
  expect_code(synDeviceAcquire(&second, nullptr), synDeviceAlreadyAcquired);
  for (const hcclDataType_t type :
       {hcclFloat32, hcclBfloat16, hcclFloat16, hcclInt32, hcclUint32}) {
    for (const hcclRedOp_t operation : {hcclSum, hcclMin, hcclMax})
      succeed(reduce(type, operation));
  }
  succeed(synStreamSynchronize(stream));
}

}  // namespace
}  // namespace hccl::test
