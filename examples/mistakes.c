// SPDX-License-Identifier: Apache-2.0
// Shows the library's errors when rank 1 of two ranks makes a mistake. Each rank prints the errors
// that its calls report. Usage: mistakes count|late|stopped|killed|address
#include <hccl.h>
#include <synapse_api.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t kCount = 1000;

static void say(int rank, const char* call, int code, const char* text) {
  printf("rank %d: %s: code %d: %s\n", rank, call, code, text != NULL ? text : "");
  fflush(stdout);
}

// Makes rank 1's mistake, except a wrong address. Returns the count for the all-reduce.
static size_t make(const char* mistake) {
  if (strcmp(mistake, "late") == 0) pause();
  if (strcmp(mistake, "stopped") == 0) raise(SIGSTOP);
  if (strcmp(mistake, "killed") == 0) raise(SIGKILL);
  return strcmp(mistake, "count") == 0 ? kCount + 1 : kCount;
}

static int run_rank(int rank, const char* mistake, const int pipe_ends[2]) {
  synDeviceId device = 0;
  synStreamHandle stream = NULL;
  uint64_t buffer = 0;
  hcclUniqueId id;
  hcclComm_t comm = NULL;
  if (synInitialize() != synSuccess || synDeviceAcquire(&device, NULL) != synSuccess) return 1;
  if (rank == 0 && hcclGetUniqueId(&id) != hcclSuccess) return 1;
  if (rank == 0 && write(pipe_ends[1], &id, sizeof id) != (ssize_t)sizeof id) return 1;
  if (rank != 0 && read(pipe_ends[0], &id, sizeof id) != (ssize_t)sizeof id) return 1;
  if (hcclCommInitRank(&comm, 2, id, rank) != hcclSuccess) return 1;
  if (synStreamCreateGeneric(&stream, device, 0) != synSuccess) return 1;
  if (synDeviceMalloc(device, 2 * kCount * sizeof(float), 0, 0, &buffer) != synSuccess) return 1;

  void* data = (void*)(uintptr_t)buffer;
  if (rank == 1 && strcmp(mistake, "address") == 0) data = (void*)1;
  char go = 0;  // rank 1 waits for rank 0's call, so that the output is always the same
  if (rank == 1 && read(pipe_ends[0], &go, 1) != 1) return 1;
  const size_t count = rank == 1 ? make(mistake) : kCount;
  // The call only queues the operation. It reports the wrong address, but not the other mistakes.
  hcclResult_t result = hcclAllReduce(data, data, count, hcclFloat, hcclSum, comm, stream);
  if (result != hcclSuccess) say(rank, "hcclAllReduce", result, hcclGetLastErrorMessage());
  if (rank == 0 && write(pipe_ends[1], &go, 1) != 1) return 1;
  // Failures that involve other ranks are reported when the program waits for the result.
  const synStatus status = synStreamSynchronize(stream);
  if (status != synSuccess) say(rank, "synStreamSynchronize", status, synGetLastErrorMessage());
  // The communicator stores the reason.
  if (hcclCommGetAsyncError(comm, &result) == hcclSuccess && result != hcclSuccess)
    say(rank, "hcclCommGetAsyncError", result, hcclCommGetAsyncErrorMessage(comm));
  return hcclCommDestroy(comm) == hcclSuccess ? 0 : 1;
}

int main(int argc, char** argv) {
  int pipe_ends[2];
  pid_t ranks[2];
  if (argc != 2 || pipe(pipe_ends) != 0) {
    fprintf(stderr, "usage: mistakes count|late|stopped|killed|address\n");
    return 2;
  }
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank] = fork();  // before the library is used: its state does not survive a fork
    if (ranks[rank] < 0) return 1;
    if (ranks[rank] == 0) exit(run_rank(rank, argv[1], pipe_ends));
  }
  int status = 0;
  waitpid(ranks[0], &status, 0);
  if (strcmp(argv[1], "late") == 0 || strcmp(argv[1], "stopped") == 0) kill(ranks[1], SIGKILL);
  waitpid(ranks[1], NULL, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
