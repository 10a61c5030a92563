// SPDX-License-Identifier: Apache-2.0
// The same walk as in hccl_walk, but with MPI. mpirun starts the ranks.
//   mpi_walk PAIRS BYTES ROUNDS [--reallocate]
#include "walk.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include <mpi.h>

namespace {

using peers::pointer;
using peers::WalkLibrary;

class MpiWalk final : public WalkLibrary {
 public:
  Pair allocate(std::span<const float> input) override {
    const Pair pair{host_.allocate(input.size_bytes()), host_.allocate(input.size_bytes())};
    std::memcpy(pointer(pair.input), input.data(), input.size_bytes());
    return pair;
  }
  void release(const Pair& pair) override {
    host_.release(pair.input);
    host_.release(pair.output);
  }
  void all_reduce(const Pair& pair, std::size_t count) override {
    MPI_Allreduce(pointer(pair.input), pointer(pair.output), static_cast<int>(count), MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
  }
  void finish_calls() override {}  // the calls block
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  std::vector<float> read(std::uint64_t buffer, std::size_t count) override {
    const auto* values = static_cast<const float*>(pointer(buffer));
    return {values, values + count};
  }

 private:
  peers::HostBuffers host_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bool reallocates = argc == 5 && argv[4] == std::string_view("--reallocate");
  if (argc != 4 && !reallocates) {
    std::fprintf(stderr, "usage: mpi_walk PAIRS BYTES ROUNDS [--reallocate]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MpiWalk library;
  const peers::Walk plan{std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10),
                         std::strtoull(argv[3], nullptr, 10), reallocates};
  const std::uint64_t wrong = peers::measure_walk(library, plan, rank, ranks);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
