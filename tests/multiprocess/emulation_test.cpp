// SPDX-License-Identifier: Apache-2.0
// Tests kernels that run between collectives and access device memory through host views.
#include "check.h"
#include "rank_test.h"
#include "ranks.h"
#include "session.h"

#include <hccl.h>

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <hccl_emulation.h>

namespace hccl::test {
namespace {

constexpr std::size_t kViewedFloats = 100'003;
constexpr int kRounds = 20;

// The arguments of a kernel. Each round's input depends on the previous round's result.
struct KernelStep {
  float* input;
  float* output;
  int rank;
  int round;
};

// Returns an element's value, which has a random mantissa.
float drawn_float(int rank, int round, std::size_t index) {
  const std::uint64_t mixed = (index * 8191 + static_cast<std::uint64_t>(rank * 64 + round)) *
                              std::uint64_t{0x9e3779b97f4a7c15};
  return static_cast<float>(mixed >> 40) * 0x1p-24F - 0.5F;
}

void fill(void* arguments) {
  const KernelStep& step = *static_cast<KernelStep*>(arguments);
  for (std::size_t i = 0; i < kViewedFloats; ++i) {
    const float before = step.round == 0 ? 0.0F : step.output[i];
    step.input[i] = drawn_float(step.rank, step.round, i) + before / 8;
  }
}

// Computes the expected result with plain loops over all ranks in order.
std::vector<float> expected(int ranks) {
  std::vector<float> result(kViewedFloats, 0.0F);
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kViewedFloats; ++i) {
      const float before = result[i];
      float sum = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const float input = drawn_float(rank, round, i) + before / 8;
        sum = rank == 0 ? input : sum + input;
      }
      result[i] = sum;
    }
  }
  return result;
}

float* floats_of(const DeviceMemory& memory) { return static_cast<float*>(memory.view()); }

RANK_TEST(Emulation, RunsKernelsInOrderWithCollectives, std::vector{1, 2, 8}) {
  const DeviceMemory input(session.device(), kViewedFloats * sizeof(float));
  const DeviceMemory output(session.device(), kViewedFloats * sizeof(float));
  std::vector<KernelStep> steps;
  for (int round = 0; round < kRounds; ++round)
    steps.push_back({floats_of(input), floats_of(output), world.rank, round});
  for (KernelStep& step : steps) {
    succeed(hcclEmulationLaunch(stream, fill, &step));
    succeed(hcclAllReduce(input.pointer(), output.pointer(), kViewedFloats, hcclFloat32, hcclSum,
                          group.handle, stream));
  }
  succeed(synStreamSynchronize(stream));
  const std::vector<float> wanted = expected(world.size);
  const float* const got = floats_of(output);
  for (std::size_t i = 0; i < kViewedFloats; ++i) require(got[i] == wanted[i], join("element ", i));
}

RANK_TEST(Emulation, RefusesBadArguments, 1) {
  const DeviceMemory memory(session.device(), 1000);
  void* view = nullptr;
  const auto expect_refused = [](hcclResult_t result, const char* part) {
    expect_code(result, hcclInvalidArgument, part);
  };
  expect_refused(hcclEmulationLaunch(stream, nullptr, nullptr), "kernel is null");
  expect_refused(hcclEmulationLaunch(nullptr, fill, nullptr), "stream");
  expect_refused(hcclEmulationHostView(memory.address(), 1000, nullptr), "view is null");
  expect_refused(hcclEmulationHostView(memory.address(), 1001, &view), "by 1 bytes");
  expect_refused(hcclEmulationHostView(host_address(&view), 1, &view), "is not a device address");
  require(view == nullptr, "a refused call returns no view");
}

}  // namespace
}  // namespace hccl::test
