// SPDX-License-Identifier: Apache-2.0
// Makes the same calls as hccl_pair, but with MPI. mpirun starts both ranks.
//   mpi_pair ping_pong|exchange|all_reduce BYTES CALLS
#include "pair.h"

#include <cstdlib>
#include <string>

#include <mpi.h>

namespace {

void call(const std::string& what, int rank, char* send, char* recv, int bytes) {
  if (what == "all_reduce") {
    MPI_Allreduce(send, recv, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (what == "exchange") {
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

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) {
    std::fprintf(stderr, "usage: mpi_pair ping_pong|exchange|all_reduce BYTES CALLS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const std::string what = argv[1];
  const int bytes = std::atoi(argv[2]);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<char> send(static_cast<std::size_t>(bytes) + 8, 1);
  std::vector<char> recv(send);
  peers::time_calls(rank, std::strtoull(argv[3], nullptr, 10),
                    [&] { call(what, rank, send.data(), recv.data(), bytes); });
  MPI_Finalize();
  return 0;
}
