// SPDX-License-Identifier: Apache-2.0
// hccl's side of the comparison, which uses only the public API. Queues calls on a stream and
// synchronises once per batch. Implements the command protocol of command.h.
//   hccl_collectives -g RANKS [--nodes NODES] [--host-memory]
// With several nodes, the ranks are distributed evenly over nodes that communicate over loopback.
#include "addresses.h"
#include "child.h"
#include "command.h"
#include "hccl_driver.h"
#include "processes.h"
#include "session.h"
#include "shape.h"

#include <hccl.h>
#include <synapse_api.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/prctl.h>
#include <unistd.h>

namespace peers {
namespace {

class HcclEngine final : public Engine {
 public:
  HcclEngine(Meeting& meeting, int rank, bool in_host_memory)
      : rank_(rank), ranks_(meeting.board.ranks), in_host_memory_(in_host_memory) {
    check(synInitialize(), "synInitialize");
    if (synDeviceAcquireByModuleId(&device_, static_cast<synModuleId>(rank)) != synSuccess)
      check(synDeviceAcquire(&device_, nullptr), "synDeviceAcquire");
    if (rank == 0) check(hcclGetUniqueId(&meeting.id), "hcclGetUniqueId");
    pthread_barrier_wait(&meeting.board.barrier);
    check(hcclCommInitRank(&comm_, ranks_, meeting.id, rank_), "hcclCommInitRank");
    check(synStreamCreateGeneric(&stream_, device_, 0), "synStreamCreateGeneric");
  }

  ~HcclEngine() override {
    synStreamDestroy(stream_);
    hcclCommDestroy(comm_);
    synDeviceRelease(device_);
    synDestroy();
  }

  void prepare(const Command& command) override {
    const std::size_t count = buffer_count(shape_of(command, rank_, ranks_));
    if (count > capacity_ || send_ == 0) reallocate(std::max<std::size_t>(count, 1));
    std::vector<float> values(count);
    fill_for_timing(command, rank_, values);
    upload(values, send_);
    upload(values, recv_);
  }

  void run(const Command& command, std::uint64_t iterations) override {
    const Shape shape = shape_of(command, rank_, ranks_);
    const std::uint64_t batch =
        command.latency ? 1 : (command.batch > 0 ? command.batch : iterations);
    for (std::uint64_t done = 0; done < iterations; done += batch) {
      const std::uint64_t calls = std::min(batch, iterations - done);
      for (std::uint64_t i = 0; i < calls; ++i)
        check(call(command, shape), collective_name(command.collective));
      check(synStreamSynchronize(stream_), "synStreamSynchronize");
    }
  }

  std::uint64_t verify(const Command& command) override {
    prepare(command);
    const Shape shape = shape_of(command, rank_, ranks_);
    upload(std::vector<float>(buffer_count(shape), kPoison), recv_);
    upload(make_input(shape, rank_), input(command, shape));
    run(command, 1);
    std::vector<float> result(shape.recv_count);
    copy(output(command, shape), address(result.data()), result.size(), DRAM_TO_HOST);
    return count_wrong(command, rank_, ranks_, result);
  }

 private:
  void reallocate(std::size_t count) {
    if (in_host_memory_) {
      host_ = {std::vector<float>(count), std::vector<float>(count)};
      send_ = address(host_[0].data());
      recv_ = address(host_[1].data());
      capacity_ = count;
      return;
    }
    for (std::uint64_t* buffer : {&send_, &recv_}) {
      if (*buffer != 0) check(synDeviceFree(device_, *buffer, 0), "synDeviceFree");
      check(synDeviceMalloc(device_, count * sizeof(float), 0, 0, buffer), "synDeviceMalloc");
    }
    capacity_ = count;
  }

  void copy(std::uint64_t from, std::uint64_t to, std::size_t count, synDmaDir direction) {
    if (in_host_memory_) {
      std::memcpy(pointer(to), pointer(from), count * sizeof(float));
    } else if (count > 0) {
      check(synMemCopyAsync(stream_, from, count * sizeof(float), to, direction),
            "synMemCopyAsync");
      check(synStreamSynchronize(stream_), "synStreamSynchronize");
    }
  }

  void upload(const std::vector<float>& values, std::uint64_t to) {
    if (!values.empty()) {
      check(synHostMap(device_, values.size() * sizeof(float), values.data()), "synHostMap");
      copy(address(values.data()), to, values.size(), HOST_TO_DRAM);
      check(synHostUnmap(device_, values.data()), "synHostUnmap");
    }
  }

  // Returns the address of the input. In place, input and output share one buffer, and the input of
  // an all_gather is a part of the output.
  [[nodiscard]] std::uint64_t input(const Command& command, const Shape& shape) const {
    const bool inside = command.in_place && command.collective == Collective::all_gather;
    return (command.in_place ? recv_ : send_) +
           (inside ? shape.in_place_offset * sizeof(float) : 0);
  }

  [[nodiscard]] std::uint64_t output(const Command& command, const Shape& shape) const {
    const bool inside = command.in_place && command.collective == Collective::reduce_scatter;
    return recv_ + (inside ? shape.in_place_offset * sizeof(float) : 0);
  }

  hcclResult_t call(const Command& command, const Shape& shape) {
    const void* from = pointer(input(command, shape));
    void* to = pointer(output(command, shape));
    const std::size_t count = shape.call_count;
    switch (command.collective) {
      case Collective::all_reduce:
        return hcclAllReduce(from, to, count, hcclFloat, hcclSum, comm_, stream_);
      case Collective::broadcast:
        return hcclBroadcast(from, to, count, hcclFloat, 0, comm_, stream_);
      case Collective::all_gather:
        return hcclAllGather(from, to, count, hcclFloat, comm_, stream_);
      case Collective::reduce_scatter:
        return hcclReduceScatter(from, to, count, hcclFloat, hcclSum, comm_, stream_);
      case Collective::reduce:
        return hcclReduce(from, to, count, hcclFloat, hcclSum, 0, comm_, stream_);
      case Collective::all_to_all:
        return hcclAlltoAll(from, to, count * static_cast<std::size_t>(ranks_), hcclFloat, comm_,
                            stream_);
      case Collective::send_receive:
        return pass_on(from, to, count);
      case Collective::barrier:
        return hcclBarrier(comm_, stream_);
    }
    return hcclInvalidArgument;
  }

  hcclResult_t pass_on(const void* from, void* to, std::size_t count) {
    check(hcclGroupStart(), "hcclGroupStart");
    check(hcclSend(from, count, hcclFloat, (rank_ + 1) % ranks_, comm_, stream_), "hcclSend");
    check(hcclRecv(to, count, hcclFloat, (rank_ + ranks_ - 1) % ranks_, comm_, stream_),
          "hcclRecv");
    return hcclGroupEnd();
  }

  int rank_;
  int ranks_;
  synDeviceId device_ = SYN_INVALID_DEVICE_ID;
  synStreamHandle stream_ = nullptr;
  hcclComm_t comm_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t send_ = 0;
  std::uint64_t recv_ = 0;
  const bool in_host_memory_;
  std::array<std::vector<float>, 2> host_;  // the buffers, if they are in host memory
};

// Makes this process part of a node. Nodes on the same machine differ only in their names. Call it
// before any function of the library.
void join_node(int node) {
  const std::string name = "hccl_collectives-" + std::to_string(getppid()) + "-" +
                           std::to_string(node);  // two drivers may run concurrently
  setenv("HCCL_NODE_ID", name.c_str(), 1);
}

int run_ranks(int ranks, int nodes, bool in_host_memory) {
  const hccl_perf::Shared<Meeting> meeting;
  initialise(meeting->board, ranks);
  const std::string title =
      "hccl, public API" + (nodes > 1 ? ", " + std::to_string(nodes) + " nodes" : std::string());
  return run_processes("hccl_collectives", ranks, [&](int rank) {
    if (nodes > 1) join_node(rank / (ranks / nodes));
    HcclEngine engine(*meeting, rank, in_host_memory);
    return serve(meeting->board, rank, engine, title);
  });
}

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  CLI::App app("Reads one command per line from standard input; see command.h");
  int ranks = 0;
  int nodes = 1;
  app.add_option("-g", ranks, "number of ranks")
      ->required()
      ->check(CLI::Range(1, peers::kMaxRanks));
  app.add_option("--nodes", nodes,
                 "number of emulated nodes on loopback, with equal numbers of ranks")
      ->check(CLI::Range(1, peers::kMaxRanks));
  bool in_host_memory = false;
  app.add_flag("--host-memory", in_host_memory, "put the buffers into ordinary host memory");
  CLI11_PARSE(app, argc, argv);
  if (ranks % nodes != 0) {
    std::fprintf(stderr, "hccl_collectives: %d ranks cannot be divided evenly among %d nodes\n",
                 ranks, nodes);
    return 2;
  }
  try {
    return peers::run_ranks(ranks, nodes, in_host_memory);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hccl_collectives: %s\n", error.what());
    return 1;
  }
}
