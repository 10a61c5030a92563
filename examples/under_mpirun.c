// SPDX-License-Identifier: Apache-2.0
// An HCCL program that mpirun starts on one or several hosts. MPI only distributes the unique id.
// Build: mpicc under_mpirun.c -I PREFIX/include/habanalabs -L PREFIX/lib/habanalabs -lSynapse
#include <hccl.h>
#include <synapse_api.h>

#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { kCount = 1 << 20 };

// Ends the job if a call has failed: MPI_Abort makes mpirun end all ranks.
static void expect(int good, const char* what) {
  if (good) return;
  const int is_hccl = strncmp(what, "hccl", 4) == 0;
  const char* why = is_hccl ? hcclGetLastErrorMessage() : synGetLastErrorMessage();
  fprintf(stderr, "%s failed: %s\n", what, why ? why : "");
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static hcclComm_t join(int rank, int ranks) {
  hcclUniqueId id;
  if (rank == 0) expect(hcclGetUniqueId(&id) == hcclSuccess, "hcclGetUniqueId");
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  hcclComm_t comm = NULL;
  expect(hcclCommInitRank(&comm, ranks, id, rank) == hcclSuccess, "hcclCommInitRank");
  return comm;
}

// All-reduces a vector whose element i is i % 100 + rank. Returns the number of wrong sums.
static int all_reduce(synDeviceId device, hcclComm_t comm, int rank, int ranks) {
  const uint64_t bytes = kCount * sizeof(float);
  synStreamHandle stream = NULL;
  float* host = NULL;
  uint64_t memory = 0;
  expect(synStreamCreateGeneric(&stream, device, 0) == synSuccess, "synStreamCreateGeneric");
  expect(synHostMalloc(device, bytes, 0, (void**)&host) == synSuccess, "synHostMalloc");
  expect(synDeviceMalloc(device, bytes, 0, 0, &memory) == synSuccess, "synDeviceMalloc");
  for (int i = 0; i < kCount; ++i) host[i] = (float)(i % 100 + rank);

  void* const data = (void*)(uintptr_t)memory;
  const uint64_t address = (uint64_t)(uintptr_t)host;
  expect(synMemCopyAsync(stream, address, bytes, memory, HOST_TO_DRAM) == synSuccess, "copy");
  expect(hcclAllReduce(data, data, kCount, hcclFloat, hcclSum, comm, stream) == hcclSuccess,
         "hcclAllReduce");
  expect(synMemCopyAsync(stream, memory, bytes, address, DRAM_TO_HOST) == synSuccess, "copy");
  expect(synStreamSynchronize(stream) == synSuccess, "synStreamSynchronize");

  int wrong = 0;
  for (int i = 0; i < kCount; ++i)
    wrong += host[i] != (float)(ranks * (i % 100) + ranks * (ranks - 1) / 2);
  expect(synDeviceFree(device, memory, 0) == synSuccess, "synDeviceFree");
  expect(synHostFree(device, host, 0) == synSuccess, "synHostFree");
  expect(synStreamDestroy(stream) == synSuccess, "synStreamDestroy");
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  synDeviceId device = 0;
  expect(synInitialize() == synSuccess, "synInitialize");
  expect(synDeviceAcquire(&device, NULL) == synSuccess, "synDeviceAcquire");
  hcclComm_t comm = join(rank, ranks);
  int wrong = all_reduce(device, comm, rank, ranks);
  expect(hcclCommDestroy(comm) == hcclSuccess, "hcclCommDestroy");
  expect(synDeviceRelease(device) == synSuccess, "synDeviceRelease");
  expect(synDestroy() == synSuccess, "synDestroy");

  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks, %d sums wrong\n", ranks, wrong);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
