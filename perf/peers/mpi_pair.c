// SPDX-License-Identifier: Apache-2.0
// The same calls as hccl_pair by MPI; mpirun starts both ranks.
//   mpi_pair ping_pong|exchange|all_reduce BYTES CALLS
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank;

static void call(const char* what, char* send, char* recv, int bytes) {
  if (strcmp(what, "all_reduce") == 0) {
    MPI_Allreduce(send, recv, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (strcmp(what, "exchange") == 0) {
    MPI_Sendrecv(send, bytes, MPI_BYTE, 1 - rank, 0, recv, bytes, MPI_BYTE, 1 - rank, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 0) {
    MPI_Send(send, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(recv, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(recv, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(send, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) {
    fprintf(stderr, "usage: mpi_pair ping_pong|exchange|all_reduce BYTES CALLS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int bytes = atoi(argv[2]);
  const int calls = atoi(argv[3]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* const send = calloc(1, (size_t)bytes + 8);
  char* const recv = calloc(1, (size_t)bytes + 8);
  double* const microseconds = calloc((size_t)calls, sizeof(double));
  memset(send, 1, (size_t)bytes);
  memset(recv, 1, (size_t)bytes);
  for (int i = 0; i < calls / 10 + 2; ++i) call(argv[1], send, recv, bytes);
  double sum = 0;
  for (int i = 0; i < calls; ++i) {
    const double begin = MPI_Wtime();
    call(argv[1], send, recv, bytes);
    microseconds[i] = (MPI_Wtime() - begin) * 1e6;
    sum += microseconds[i];
  }
  qsort(microseconds, (size_t)calls, sizeof(double), compare);
  if (rank == 0) printf("%.3f %.3f\n", microseconds[calls / 2], sum / calls);
  free(send);
  free(recv);
  free(microseconds);
  MPI_Finalize();
  return 0;
}
