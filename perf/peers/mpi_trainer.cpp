// SPDX-License-Identifier: Apache-2.0
// ddp_trainer's training loop, but with MPI_Allreduce for the gradients, for comparison. With
// --no-communication as the first argument, each rank trains alone, which shows the cost of
// communication.
#include "errors.h"
#include "rank_program.h"
#include "report_error.h"

#include <cstdlib>
#include <cstring>

#include <mpi.h>

namespace ddp_trainer {
namespace {

// Performs one blocking all-reduce after the backward pass, in place and on the compute stream.
class MpiSync final : public GradientSync {
 public:
  explicit MpiSync(const Rank& rank) : rank_(rank) {}

  void reduce(Gradients& gradients) override {
    if (gradients.wire_type() != hcclFloat32)
      throw UsageError("MPI has no bfloat16; leave --gradients out");
    rank_.trace->launch(*rank_.compute, "MPI_Allreduce", [&gradients] {
      MPI_Allreduce(MPI_IN_PLACE, gradients.values().host(), static_cast<int>(gradients.count()),
                    MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    });
  }

 private:
  Rank rank_;
};

class NoSync final : public GradientSync {
 public:
  void reduce(Gradients& /*gradients*/) override {}
};

hcclUniqueId broadcast_id(int rank) {
  hcclUniqueId id{};
  if (rank == 0) check(hcclGetUniqueId(&id), "hcclGetUniqueId");
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  return id;
}

int run_program(int argc, char** argv) {
  int provided = 0;
  int rank = 0;
  int ranks = 1;
  // Kernels call MPI on the thread that runs the stream's queue.
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  hccl_perf::set_program_name("mpi_trainer");
  try {
    if (provided < MPI_THREAD_SERIALIZED)
      throw RunError("this MPI lacks MPI_THREAD_SERIALIZED; use an MPI that supports it");
    const bool alone = argc > 1 && std::strcmp(argv[1], "--no-communication") == 0;
    if (alone) {
      argv[1] = argv[0];
      ++argv, --argc;
    }
    const auto parsed = parse_options(argc, argv);
    if (std::holds_alternative<HelpText>(parsed))
      throw UsageError("the options are those of ddp_trainer; see ddp_trainer --help");
    auto options = std::get<Options>(parsed);
    options.mode_name = alone ? "no communication" : "MPI_Allreduce";
    const Inputs inputs = read_inputs(options, ranks);
    run_rank(
        options, [&]() -> const Inputs& { return inputs; }, {rank, ranks, rank},
        [rank] { return broadcast_id(rank); },
        [alone](const Options&, const Rank& place) -> std::unique_ptr<GradientSync> {
          if (alone) return std::make_unique<NoSync>();
          return std::make_unique<MpiSync>(place);
        });
  } catch (const std::exception& error) {
    hccl_perf::report_error(error.what());
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }
  MPI_Finalize();
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace ddp_trainer

int main(int argc, char** argv) { return ddp_trainer::run_program(argc, argv); }
