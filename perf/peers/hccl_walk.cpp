// SPDX-License-Identifier: Apache-2.0
// hccl's side of the comparison on new buffers (cold.py). Uses only the public API.
//   hccl_walk -g RANKS [--host-memory] [--reallocate] PAIRS BYTES ROUNDS
#include "child.h"
#include "hccl_driver.h"
#include "processes.h"
#include "session.h"
#include "walk.h"

#include <hccl.h>
#include <synapse_api.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/prctl.h>

namespace peers {
namespace {

class HcclWalk final : public WalkLibrary {
 public:
  HcclWalk(Meeting& meeting, int rank, bool in_host_memory)
      : board_(meeting.board), in_host_memory_(in_host_memory) {
    check(synInitialize(), "synInitialize");
    check(synDeviceAcquire(&device_, nullptr), "synDeviceAcquire");
    check(synStreamCreateGeneric(&stream_, device_, 0), "synStreamCreateGeneric");
    if (rank == 0) check(hcclGetUniqueId(&meeting.id), "hcclGetUniqueId");
    barrier();
    check(hcclCommInitRank(&comm_, board_.ranks, meeting.id, rank), "hcclCommInitRank");
  }
  ~HcclWalk() override {
    hcclCommDestroy(comm_);
    synStreamDestroy(stream_);
    synDeviceRelease(device_);
    synDestroy();
  }

  Pair allocate(std::span<const float> input) override {
    const Pair pair{allocate(input.size_bytes()), allocate(input.size_bytes())};
    if (in_host_memory_) {
      std::memcpy(pointer(pair.input), input.data(), input.size_bytes());
    } else {
      copy(address(input.data()), pair.input, input.size_bytes(), HOST_TO_DRAM);
    }
    return pair;
  }
  void release(const Pair& pair) override {
    for (const std::uint64_t buffer : {pair.input, pair.output}) {
      if (in_host_memory_)
        host_.release(buffer);
      else
        check(synDeviceFree(device_, buffer, 0), "synDeviceFree");
    }
  }
  void all_reduce(const Pair& pair, std::size_t count) override {
    check(hcclAllReduce(pointer(pair.input), pointer(pair.output), count, hcclFloat32, hcclSum,
                        comm_, stream_),
          "hcclAllReduce");
  }
  void finish_calls() override { check(synStreamSynchronize(stream_), "synStreamSynchronize"); }
  void barrier() override { pthread_barrier_wait(&board_.barrier); }
  std::vector<float> read(std::uint64_t buffer, std::size_t count) override {
    std::vector<float> values(count);
    if (in_host_memory_)
      std::memcpy(values.data(), pointer(buffer), count * sizeof(float));
    else
      copy(buffer, address(values.data()), count * sizeof(float), DRAM_TO_HOST);
    return values;
  }

 private:
  [[nodiscard]] std::uint64_t allocate(std::size_t bytes) {
    if (in_host_memory_) return host_.allocate(bytes);
    std::uint64_t buffer = 0;
    check(synDeviceMalloc(device_, bytes, 0, 0, &buffer), "synDeviceMalloc");
    return buffer;
  }
  void copy(std::uint64_t from, std::uint64_t to, std::size_t bytes, synDmaDir direction) const {
    check(synMemCopyAsync(stream_, from, bytes, to, direction), "synMemCopyAsync");
    check(synStreamSynchronize(stream_), "synStreamSynchronize");
  }

  CommandBoard& board_;
  const bool in_host_memory_;
  HostBuffers host_;
  synDeviceId device_ = SYN_INVALID_DEVICE_ID;
  synStreamHandle stream_ = nullptr;
  hcclComm_t comm_ = nullptr;
};

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  CLI::App app("Measures all-reduces that use many pairs of buffers in turn; see walk.h");
  int ranks = 0;
  bool in_host_memory = false;
  peers::Walk plan;
  app.add_option("-g", ranks, "number of ranks")
      ->required()
      ->check(CLI::Range(1, peers::kMaxRanks));
  app.add_flag("--host-memory", in_host_memory, "put the buffers into ordinary host memory");
  app.add_flag("--reallocate", plan.reallocates, "allocate and free the buffers of each call");
  app.add_option("pairs", plan.pairs)->required()->check(CLI::PositiveNumber);
  app.add_option("bytes", plan.bytes)
      ->required()
      ->check(CLI::Range(std::size_t{64}, std::size_t{1} << 30));
  app.add_option("rounds", plan.rounds)->required()->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    const hccl_perf::Shared<peers::Meeting> meeting;
    peers::initialise(meeting->board, ranks);
    return peers::run_processes("hccl_walk", ranks, [&](int rank) {
      peers::HcclWalk library(*meeting, rank, in_host_memory);
      return peers::measure_walk(library, plan, rank, ranks);
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hccl_walk: %s\n", error.what());
    return 1;
  }
}
