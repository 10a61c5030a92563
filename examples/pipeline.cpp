// SPDX-License-Identifier: Apache-2.0
// A pipeline: every rank is a stage that processes micro-batches and passes them to the next rank.
// While a stage processes a micro-batch on one stream, it sends the previous micro-batch and
// receives the next as one group on another stream. Events order the streams. Needs only C++11.
// Usage: pipeline [ranks]
#include <hccl.h>
#include <synapse_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace {

const int kBatches = 16;
const int kSlots = 3;  // one micro-batch arrives, one is processed, one leaves
const std::size_t kCount = 1 << 14;
const std::uint64_t kBytes = kCount * sizeof(float);

void expect(bool good, const char* what, const char* why) {
  if (!good) throw std::runtime_error(std::string(what) + ": " + (why != nullptr ? why : "failed"));
}

void expect(synStatus status, const char* what) {
  expect(status == synSuccess, what, synGetLastErrorMessage());
}

void expect(hcclResult_t result, const char* what) {
  expect(result == hcclSuccess, what, hcclGetLastErrorMessage());
}

struct Stage {
  int rank, ranks;
  synDeviceId device;
  hcclComm_t comm;
  synStreamHandle work, network;
  synEventHandle worked, moved;  // recorded in the previous step
  std::uint64_t slots;           // address of device memory for kSlots micro-batches
  float* host;                   // working memory on the host

  std::uint64_t slot_of(int batch) const {
    return slots + static_cast<std::uint64_t>(batch % kSlots) * kBytes;
  }
  bool is_first() const { return rank == 0; }
  bool is_last() const { return rank == ranks - 1; }
};

bool exists(int batch) { return batch >= 0 && batch < kBatches; }

Stage open_stage(int rank, int ranks, const hcclUniqueId& id, synDeviceId device) {
  Stage stage = Stage();
  stage.rank = rank;
  stage.ranks = ranks;
  stage.device = device;
  expect(hcclCommInitRank(&stage.comm, ranks, id, rank), "hcclCommInitRank");
  expect(synStreamCreateGeneric(&stage.work, device, 0), "synStreamCreateGeneric");
  expect(synStreamCreateGeneric(&stage.network, device, 0), "synStreamCreateGeneric");
  expect(synEventCreate(&stage.worked, device, 0), "synEventCreate");
  expect(synEventCreate(&stage.moved, device, 0), "synEventCreate");
  expect(synDeviceMalloc(device, kSlots * kBytes, 0, 0, &stage.slots), "synDeviceMalloc");
  void* memory = nullptr;
  expect(synHostMalloc(device, kBytes, 0, &memory), "synHostMalloc");
  stage.host = static_cast<float*>(memory);
  return stage;
}

// Queues the transfers that run during the work on `batch`: sends the previous micro-batch, and
// receives the next.
void queue_exchange(const Stage& stage, int batch) {
  const std::uint64_t leaves = stage.slot_of(batch - 1 + kSlots);
  const std::uint64_t arrives = stage.slot_of(batch + 1 + kSlots);
  expect(hcclGroupStart(), "hcclGroupStart");
  if (!stage.is_last() && exists(batch - 1)) {
    expect(hcclSend(reinterpret_cast<const void*>(leaves), kCount, hcclFloat, stage.rank + 1,
                    stage.comm, stage.network),
           "hcclSend");
  }
  if (!stage.is_first() && exists(batch + 1)) {
    expect(hcclRecv(reinterpret_cast<void*>(arrives), kCount, hcclFloat, stage.rank - 1, stage.comm,
                    stage.network),
           "hcclRecv");
  }
  expect(hcclGroupEnd(), "hcclGroupEnd");
}

// Adds rank + 1 to every element, on the host instead of in a device kernel. The first stage
// creates the micro-batch, and the last stage checks it. Returns the number of wrong elements.
int work_on(const Stage& stage, int batch) {
  const auto host = reinterpret_cast<std::uintptr_t>(stage.host);
  if (!stage.is_first()) {
    expect(synMemCopyAsync(stage.work, stage.slot_of(batch), kBytes, host, DRAM_TO_HOST), "copy");
  }
  // Also waits for the copy of the previous micro-batch from the same host memory.
  expect(synStreamSynchronize(stage.work), "synStreamSynchronize");
  if (stage.is_first()) {
    for (std::size_t i = 0; i < kCount; ++i) stage.host[i] = static_cast<float>(batch);
  }
  int wrong = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    stage.host[i] += static_cast<float>(stage.rank + 1);
    const int sum = batch + stage.ranks * (stage.ranks + 1) / 2;
    if (stage.is_last() && stage.host[i] != static_cast<float>(sum)) ++wrong;
  }
  expect(synMemCopyAsync(stage.work, host, kBytes, stage.slot_of(batch), HOST_TO_DRAM), "copy");
  return wrong;
}

// Runs all steps: in step s, stage r works on micro-batch s - 2r. Returns the number of wrong
// elements.
int run_pipeline(const Stage& stage) {
  int wrong = 0;
  for (int step = 0; step < kBatches + 2 * stage.ranks; ++step) {
    const int batch = step - 2 * stage.rank;
    // A micro-batch is received in one step, processed in the next, and sent in the step after
    // that.
    expect(synStreamWaitEvent(stage.work, stage.moved, 0), "synStreamWaitEvent");
    expect(synStreamWaitEvent(stage.network, stage.worked, 0), "synStreamWaitEvent");
    queue_exchange(stage, batch);
    expect(synEventRecord(stage.moved, stage.network), "synEventRecord");
    if (exists(batch)) wrong += work_on(stage, batch);
    expect(synEventRecord(stage.worked, stage.work), "synEventRecord");
  }
  expect(synDeviceSynchronize(stage.device), "synDeviceSynchronize");
  return wrong;
}

int run_rank(int rank, int ranks, const int pipe_ends[2]) {
  synDeviceId device = 0;
  hcclUniqueId id = {{0}, 0};
  expect(synInitialize(), "synInitialize");
  expect(synDeviceAcquire(&device, nullptr), "synDeviceAcquire");
  if (rank == 0) expect(hcclGetUniqueId(&id), "hcclGetUniqueId");
  for (int peer = 1; rank == 0 && peer < ranks; ++peer)
    expect(write(pipe_ends[1], &id, sizeof id) == sizeof id, "write", "cannot send the id");
  if (rank != 0)
    expect(read(pipe_ends[0], &id, sizeof id) == sizeof id, "read", "no id from rank 0");

  const Stage stage = open_stage(rank, ranks, id, device);
  const int wrong = run_pipeline(stage);
  if (stage.is_last())
    std::printf("%d stages, %d micro-batches, %d wrong elements\n", ranks, kBatches, wrong);
  expect(hcclCommDestroy(stage.comm), "hcclCommDestroy");
  expect(synDestroy(), "synDestroy");
  return wrong == 0 ? 0 : 1;
}

int run_child(int rank, int ranks, const int pipe_ends[2]) {
  try {
    return run_rank(rank, ranks, pipe_ends);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 4;
  int pipe_ends[2];
  if (ranks < 1 || ranks > 16 || pipe(pipe_ends) != 0) {
    std::fprintf(stderr, "usage: pipeline [1..16 ranks]\n");
    return 2;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();  // before the library is used: its state does not survive a fork
    if (child < 0) return 1;
    if (child == 0) std::exit(run_child(rank, ranks, pipe_ends));
  }
  bool failed = false;
  for (int rank = 0, status = 0; rank < ranks && wait(&status) > 0; ++rank) failed |= status != 0;
  return failed ? 1 : 0;
}
