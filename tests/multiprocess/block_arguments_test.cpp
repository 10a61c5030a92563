// SPDX-License-Identifier: Apache-2.0
// Tests that the variable-size collectives refuse invalid arguments without queueing anything.
#include "rank_test.h"
#include "session.h"

#include <gtest/gtest.h>
#include <hccl_emulation.h>

namespace hccl::test {
namespace {

using Counts = std::vector<std::uint64_t>;

// Invalid arguments must be refused, nothing may be queued, and the communicator must stay usable.
RANK_TEST(BlockArguments, AreChecked, 2) {
  const DeviceMemory send(session.device(), 4096), recv(session.device(), 4096);
  const auto at = [](const DeviceMemory& memory, std::size_t byte = 0) {
    return device_pointer(memory.address() + byte);
  };
  const auto invalid = [](hcclResult_t result, const std::string& part) {
    expect_code(result, hcclInvalidArgument, part);
  };
  const Counts tens{10, 10}, overlapping{0, 9}, huge{10, std::uint64_t{1} << 61},
      long_ones{10, 600};
  const auto gather = [&](void* from, void* to, const Counts* counts, const Counts* displacements) {
    return hcclEmulationAllGatherV(from, to, counts != nullptr ? counts->data() : nullptr,
                                   displacements != nullptr ? displacements->data() : nullptr,
                                   hcclInt64, group.handle, stream);
  };
  invalid(gather(at(send), at(recv), nullptr, nullptr), "counts is null");
  invalid(gather(at(send), at(recv), &huge, nullptr), "2^63");
  invalid(gather(at(send), at(recv), &tens, &huge), "2^63");
  invalid(gather(at(send), at(recv), &long_ones, nullptr), "recvbuff");
  invalid(gather(at(send), nullptr, &tens, nullptr), "recvbuff is null");
  invalid(gather(nullptr, at(recv), &tens, nullptr), "sendbuff is null");
  invalid(gather(at(send), at(recv), &tens, &overlapping), "overlap");
  invalid(gather(at(recv, 8), at(recv), &tens, nullptr), "overlap");
  const auto scatter = [&](void* from, void* to, const Counts* counts, hcclDataType_t type,
                           hcclRedOp_t op) {
    return hcclEmulationReduceScatterV(from, to, counts != nullptr ? counts->data() : nullptr,
                                       nullptr, type, op, group.handle, stream);
  };
  invalid(scatter(at(send), at(recv), nullptr, hcclInt8, hcclSum), "counts is null");
  invalid(scatter(at(send), at(recv), &tens, hcclInt8, hcclOpNone), "reduceOp");
  invalid(scatter(at(send), at(recv), &tens, hcclFloat32, hcclEmulationBitOr), "bitor");
  invalid(scatter(at(send), at(send, 4), &tens, hcclInt8, hcclSum), "overlap");
  invalid(scatter(at(send), nullptr, &tens, hcclInt8, hcclSum), "recvbuff is null");
  const auto exchange = [&](void* to, const Counts* sent, const Counts* received,
                            hcclDataType_t type) {
    return hcclEmulationAlltoAllV(at(send), sent != nullptr ? sent->data() : nullptr, nullptr, to,
                                  received != nullptr ? received->data() : nullptr, nullptr, type,
                                  group.handle, stream);
  };
  invalid(exchange(at(recv), nullptr, &tens, hcclInt8), "send_counts is null");
  invalid(exchange(at(recv), &tens, nullptr, hcclInt8), "recv_counts is null");
  invalid(exchange(at(send), &tens, &tens, hcclInt8), "overlap");
  invalid(exchange(at(recv), &tens, &tens, hcclNumTypes), "datatype");
  invalid(
      hcclEmulationAllGatherV(at(send), at(recv), tens.data(), nullptr, hcclInt8, &session, stream),
      "unknown communicator");
  invalid(hcclEmulationAllGatherV(at(send), at(recv), tens.data(), nullptr, hcclInt8, group.handle,
                                  nullptr),
          "unknown stream");
  const Counts none{0, 0};
  succeed(hcclEmulationAllGatherV(nullptr, nullptr, none.data(), nullptr, hcclInt8, group.handle,
                                  stream));
  succeed(scatter(nullptr, nullptr, &none, hcclInt8, hcclSum));
  succeed(exchange(at(recv), &tens, &tens, hcclInt8));
  succeed(synStreamSynchronize(stream));
}

// A group holds at most 1024 calls per stream. A collective whose messages exceed this limit must
// be refused as a whole and must leave the group unchanged.
RANK_TEST(BlockArguments, ThatOverflowAGroupAreNotQueuedInPart, 2) {
  const DeviceMemory memory(session.device(), 4096);
  void* const buffer = memory.pointer();
  void* const other = device_pointer(memory.address() + 2048);
  const Counts ones{1, 1};
  succeed(hcclGroupStart());
  for (int call = 0; call < 1021; ++call)
    succeed(hcclAllReduce(buffer, buffer, 1, hcclInt32, hcclMax, group.handle, stream));
  expect_code(
      hcclEmulationAllGatherV(buffer, other, ones.data(), nullptr, hcclInt32, group.handle, stream),
      hcclInvalidUsage);
  succeed(hcclEmulationReduceScatterV(buffer, other, ones.data(), nullptr, hcclInt32, hcclMax,
                                      group.handle, stream));
  succeed(hcclGroupEnd());
  succeed(synStreamSynchronize(stream));
}

RANK_TEST(BlockArguments, AreRefusedInStrictMode, 2,
          RankOptions{.environment = {{"HCCL_STRICT", "1"}}}) {
  const Counts none{0, 0};
  expect_code(hcclEmulationAllGatherV(nullptr, nullptr, none.data(), nullptr, hcclFloat32,
                                      group.handle, stream),
              hcclUnsupported);
}

}  // namespace
}  // namespace hccl::test
