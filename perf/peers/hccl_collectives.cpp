// SPDX-License-Identifier: Apache-2.0
// Our side of the comparison, on the public API alone: calls queued on a stream, one synchronise
// for each batch, under the command protocol of command.h.
//   hccl_collectives -g RANKS
// The ranks are child processes; the parent only watches over them.
#include "command.h"
#include "session.h"
#include "shape.h"

#include <hccl.h>
#include <synapse_api.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace peers {
namespace {

struct Shared {
  Board board;
  hcclUniqueId id{};
};

void check(hcclResult_t result, const char* call) {
  if (result != hcclSuccess) {
    const char* text = hcclGetLastErrorMessage();
    throw std::runtime_error(std::string(call) + ": " +
                             (text != nullptr ? text : hcclGetErrorString(result)));
  }
}

void check(synStatus status, const char* call) {
  if (status != synSuccess) {
    const char* text = hcclGetLastErrorMessage();
    throw std::runtime_error(std::string(call) + ": status " + std::to_string(status) + ": " +
                             (text != nullptr ? text : "no text"));
  }
}

class HcclEngine final : public Engine {
 public:
  HcclEngine(Shared& shared, int rank) : rank_(rank), ranks_(shared.board.ranks) {
    check(synInitialize(), "synInitialize");
    if (synDeviceAcquireByModuleId(&device_, static_cast<synModuleId>(rank)) != synSuccess) {
      check(synDeviceAcquire(&device_, nullptr), "synDeviceAcquire");
    }
    if (rank == 0) {
      check(hcclGetUniqueId(&shared.id), "hcclGetUniqueId");
    }
    pthread_barrier_wait(&shared.board.barrier);
    check(hcclCommInitRank(&comm_, ranks_, shared.id, rank_), "hcclCommInitRank");
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
    if (count > capacity_ || send_ == 0) {
      reallocate(std::max<std::size_t>(count, 1));
    }
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
      for (std::uint64_t i = 0; i < calls; ++i) {
        check(call(command, shape), collective_name(command.collective));
      }
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
  static std::uint64_t address(const void* host) { return reinterpret_cast<std::uint64_t>(host); }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the API takes device addresses as pointers
  static void* pointer(std::uint64_t device) { return reinterpret_cast<void*>(device); }

  void reallocate(std::size_t count) {
    for (std::uint64_t* buffer : {&send_, &recv_}) {
      if (*buffer != 0) {
        check(synDeviceFree(device_, *buffer, 0), "synDeviceFree");
      }
      check(synDeviceMalloc(device_, count * sizeof(float), 0, 0, buffer), "synDeviceMalloc");
    }
    capacity_ = count;
  }

  void copy(std::uint64_t from, std::uint64_t to, std::size_t count, synDmaDir direction) {
    if (count > 0) {
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

  // In place, one buffer serves both; which of the two is the larger depends on the collective.
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
};

int run_rank(Shared& shared, int rank) {
  try {
    HcclEngine engine(shared, rank);
    return serve(shared.board, rank, engine, "hccl, public API") == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hccl_collectives: rank %d: %s\n", rank, error.what());
    return 1;
  }
}

// Waits for all ranks; the first that fails takes the others with it.
int watch(const std::vector<pid_t>& children) {
  int failed = 0;
  for (std::size_t left = children.size(); left > 0; --left) {
    int status = 0;
    wait(&status);
    if (status != 0 && failed == 0) {
      failed = 1;
      for (const pid_t child : children) {
        kill(child, SIGKILL);
      }
    }
  }
  return failed;
}

int run_ranks(int ranks) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  auto& shared = *new (memory) Shared();
  initialise(shared.board, ranks);
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::_Exit(getppid() == parent ? run_rank(shared, rank) : 1);
    }
    if (child < 0) {
      std::perror("hccl_collectives: fork");
      break;  // the children end with this process
    }
    children.push_back(child);
  }
  return children.size() == static_cast<std::size_t>(ranks) ? watch(children) : 1;
}

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int ranks = argc == 3 && std::strcmp(argv[1], "-g") == 0 ? std::atoi(argv[2]) : 0;
  if (ranks < 1 || ranks > peers::kMaxRanks) {
    std::fprintf(stderr,
                 "usage: hccl_collectives -g RANKS; then one command a line on standard input\n");
    return 2;
  }
  try {
    return peers::run_ranks(ranks);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hccl_collectives: %s\n", error.what());
    return 1;
  }
}
