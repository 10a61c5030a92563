// SPDX-License-Identifier: Apache-2.0
// A complete HCCL program in C: one process per rank, one emulated device per process, one checked
// all-reduce. Usage: all_reduce [ranks]
#include <hccl.h>
#include <synapse_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kCount = 100000 };

static void expect_syn(synStatus status, const char* what) {
  if (status == synSuccess) return;
  fprintf(stderr, "%s failed: %s: %s\n", what, synGetErrorString(status), synGetLastErrorMessage());
  exit(1);
}

static void expect_hccl(hcclResult_t result, const char* what) {
  if (result == hcclSuccess) return;
  const char* why = hcclGetLastErrorMessage();
  fprintf(stderr, "%s failed: %s: %s\n", what, hcclGetErrorString(result), why ? why : "");
  exit(1);
}

// Returns the unique id, which rank 0 creates and passes to the other ranks. A real program would
// use MPI or a store for this.
static hcclUniqueId agree_on_id(int rank, int ranks, const int pipe_ends[2]) {
  hcclUniqueId id;
  if (rank == 0) {
    expect_hccl(hcclGetUniqueId(&id), "hcclGetUniqueId");
    for (int peer = 1; peer < ranks; ++peer) {
      if (write(pipe_ends[1], &id, sizeof id) != (ssize_t)sizeof id) exit(1);
    }
  } else if (read(pipe_ends[0], &id, sizeof id) != (ssize_t)sizeof id) {
    exit(1);
  }
  return id;
}

static uint64_t device_buffer(synDeviceId device) {
  uint64_t address = 0;
  expect_syn(synDeviceMalloc(device, kCount * sizeof(float), 0, 0, &address), "synDeviceMalloc");
  return address;
}

// All-reduces a vector whose element i is i % 100 + rank. Returns the number of wrong sums.
static int all_reduce(synDeviceId device, hcclComm_t comm, int rank, int ranks) {
  synStreamHandle stream = NULL;
  float* host = NULL;
  expect_syn(synStreamCreateGeneric(&stream, device, 0), "synStreamCreateGeneric");
  expect_syn(synHostMalloc(device, kCount * sizeof(float), 0, (void**)&host), "synHostMalloc");
  for (int i = 0; i < kCount; ++i) host[i] = (float)(i % 100 + rank);

  const uint64_t send = device_buffer(device);
  const uint64_t recv = device_buffer(device);
  const uint64_t bytes = kCount * sizeof(float);
  expect_syn(synMemCopyAsync(stream, (uint64_t)(uintptr_t)host, bytes, send, HOST_TO_DRAM), "copy");
  expect_hccl(hcclAllReduce((const void*)(uintptr_t)send, (void*)(uintptr_t)recv, kCount, hcclFloat,
                            hcclSum, comm, stream),
              "hcclAllReduce");
  expect_syn(synMemCopyAsync(stream, recv, bytes, (uint64_t)(uintptr_t)host, DRAM_TO_HOST), "copy");
  expect_syn(synStreamSynchronize(stream), "synStreamSynchronize");

  int wrong = 0;
  for (int i = 0; i < kCount; ++i) {
    wrong += host[i] != (float)(i % 100 * ranks + ranks * (ranks - 1) / 2);
  }
  expect_syn(synHostFree(device, host, 0), "synHostFree");
  expect_syn(synStreamDestroy(stream), "synStreamDestroy");
  return wrong;
}

static int run_rank(int rank, int ranks, const int pipe_ends[2]) {
  synDeviceId device = 0;
  expect_syn(synInitialize(), "synInitialize");
  expect_syn(synDeviceAcquire(&device, NULL), "synDeviceAcquire");
  hcclComm_t comm = NULL;
  expect_hccl(hcclCommInitRank(&comm, ranks, agree_on_id(rank, ranks, pipe_ends), rank),
              "hcclCommInitRank");
  const int wrong = all_reduce(device, comm, rank, ranks);
  expect_hccl(hcclCommDestroy(comm), "hcclCommDestroy");
  expect_syn(synDeviceRelease(device), "synDeviceRelease");
  expect_syn(synDestroy(), "synDestroy");
  return wrong == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? atoi(argv[1]) : 4;
  int pipe_ends[2];
  if (ranks < 1 || ranks > 16 || pipe(pipe_ends) != 0) {
    fprintf(stderr, "usage: all_reduce [1..16 ranks]\n");
    return 2;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();  // before the library is used: its state does not survive a fork
    if (child < 0) return 1;
    if (child == 0) exit(run_rank(rank, ranks, pipe_ends));
  }
  int failed = 0;
  for (int rank = 0, status = 0; rank < ranks && wait(&status) > 0; ++rank) failed += status != 0;
  if (failed == 0) printf("%d ranks agree on %d sums\n", ranks, kCount);
  return failed == 0 ? 0 : 1;
}
