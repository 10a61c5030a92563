// SPDX-License-Identifier: Apache-2.0
// MPI's side of the comparison: blocking collectives in sequence. Implements the command protocol
// of command.h. `variant` forces an algorithm of Open MPI's coll/tuned; with variant 0, the library
// chooses. For reduce_scatter, variants 1 to 9 are algorithms of MPI_Reduce_scatter_block. Variants
// of 10 or more call MPI_Reduce_scatter: 10 with Open MPI's choice, 11 and above with a forced
// algorithm. Forcing requires OMPI_MCA_coll_tuned_use_dynamic_rules=1 in the environment.
#include "command.h"
#include "session.h"
#include "shape.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace peers {
namespace {

constexpr int kReduceScatterCall = 10;  // first variant of MPI_Reduce_scatter

struct ForcedAlgorithm {
  std::string parameter;
  int algorithm;
};

ForcedAlgorithm forced_algorithm(Collective collective, int variant) {
  if (collective == Collective::send_receive) return {"", 0};
  if (collective == Collective::reduce_scatter && variant >= kReduceScatterCall)
    return {"coll_tuned_reduce_scatter_algorithm", variant - kReduceScatterCall};
  const std::map<Collective, const char*> names{
      {Collective::all_reduce, "allreduce"}, {Collective::broadcast, "bcast"},
      {Collective::all_gather, "allgather"}, {Collective::reduce_scatter, "reduce_scatter_block"},
      {Collective::reduce, "reduce"},        {Collective::all_to_all, "alltoall"},
      {Collective::barrier, "barrier"}};
  return {std::string("coll_tuned_") + names.at(collective) + "_algorithm", variant};
}

void write_control_variable(const std::string& name, int value) {
  int index = 0;
  MPI_T_cvar_handle handle = nullptr;
  int elements = 0;
  if (MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS ||
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &elements) != MPI_SUCCESS)
    throw std::runtime_error("this MPI has no control variable " + name);
  const int status = MPI_T_cvar_write(handle, &value);
  MPI_T_cvar_handle_free(&handle);
  if (status != MPI_SUCCESS) throw std::runtime_error("cannot set " + name);
}

class MpiEngine final : public Engine {
 public:
  MpiEngine(int rank, int ranks) : rank_(rank), ranks_(ranks) {}

  ~MpiEngine() override {
    for (auto& [key, communicator] : communicators_) MPI_Comm_free(&communicator);
  }

  void prepare(const Command& command) override {
    const std::size_t count = buffer_count(shape_of(command, rank_, ranks_));
    send_.resize(std::max(count, send_.size()));
    recv_.resize(std::max(count, recv_.size()));
    fill_for_timing(command, rank_, {send_.data(), count});
    fill_for_timing(command, rank_, {recv_.data(), count});
    communicator(command);
  }

  void run(const Command& command, std::uint64_t iterations) override {
    const Shape shape = shape_of(command, rank_, ranks_);
    MPI_Comm comm = communicator(command);
    const std::vector<int> counts(static_cast<std::size_t>(ranks_),
                                  static_cast<int>(shape.call_count));
    for (std::uint64_t i = 0; i < iterations; ++i) call(command, shape, counts, comm);
  }

  std::uint64_t verify(const Command& command) override {
    prepare(command);
    const Shape shape = shape_of(command, rank_, ranks_);
    place_input(command, rank_, ranks_, send_, recv_);
    run(command, 1);
    return count_wrong(command, rank_, ranks_, {recv_.data(), shape.recv_count});
  }

 private:
  // Returns the communicator for the command's algorithm. Each algorithm has a communicator of its
  // own, because Open MPI reads the setting only when a communicator is created.
  MPI_Comm communicator(const Command& command) {
    const auto key = std::make_pair(command.collective, command.variant);
    const auto found = communicators_.find(key);
    if (found != communicators_.end()) return found->second;
    const ForcedAlgorithm forced = forced_algorithm(command.collective, command.variant);
    MPI_Comm comm = MPI_COMM_NULL;
    if (forced.algorithm == 0) {
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    } else {
      write_control_variable(forced.parameter, forced.algorithm);
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      write_control_variable(forced.parameter, 0);
    }
    communicators_.emplace(key, comm);
    return comm;
  }

  void call(const Command& command, const Shape& shape, const std::vector<int>& counts,
            MPI_Comm comm) {
    const void* input = command.in_place ? MPI_IN_PLACE : send_.data();
    const int count = static_cast<int>(shape.call_count);
    switch (command.collective) {
      case Collective::all_reduce:
        MPI_Allreduce(input, recv_.data(), count, MPI_FLOAT, MPI_SUM, comm);
        break;
      case Collective::broadcast:
        if (!command.in_place && rank_ == 0)
          std::memcpy(recv_.data(), send_.data(), shape.call_count * sizeof(float));
        MPI_Bcast(recv_.data(), count, MPI_FLOAT, 0, comm);
        break;
      case Collective::all_gather:
        MPI_Allgather(input, count, MPI_FLOAT, recv_.data(), count, MPI_FLOAT, comm);
        break;
      case Collective::reduce_scatter:
        if (command.variant >= kReduceScatterCall)
          MPI_Reduce_scatter(input, recv_.data(), counts.data(), MPI_FLOAT, MPI_SUM, comm);
        else
          MPI_Reduce_scatter_block(input, recv_.data(), count, MPI_FLOAT, MPI_SUM, comm);
        break;
      case Collective::reduce:
        MPI_Reduce(rank_ == 0 ? input : send_.data(), recv_.data(), count, MPI_FLOAT, MPI_SUM, 0,
                   comm);
        break;
      case Collective::all_to_all:
        MPI_Alltoall(input, count, MPI_FLOAT, recv_.data(), count, MPI_FLOAT, comm);
        break;
      case Collective::send_receive:
        MPI_Sendrecv(send_.data(), count, MPI_FLOAT, (rank_ + 1) % ranks_, 0, recv_.data(), count,
                     MPI_FLOAT, (rank_ + ranks_ - 1) % ranks_, 0, comm, MPI_STATUS_IGNORE);
        break;
      case Collective::barrier:
        MPI_Barrier(comm);
        break;
    }
  }

  int rank_;
  int ranks_;
  std::vector<float> send_;
  std::vector<float> recv_;
  std::map<std::pair<Collective, int>, MPI_Comm> communicators_;
};

// The board, in memory that all ranks map. All ranks must be on one machine, even if MPI treats it
// as several.
class SharedBoard {
 public:
  SharedBoard(int rank, int ranks) {
    std::array<char, 64> name{};
    if (rank == 0)
      std::snprintf(name.data(), name.size(), "/hccl-mpi_collectives-%d",
                    static_cast<int>(getpid()));
    MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) map(name.data(), O_CREAT | O_EXCL);
    if (rank == 0) initialise(*new (board_) CommandBoard(), ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) map(name.data(), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) shm_unlink(name.data());
  }
  ~SharedBoard() { munmap(board_, sizeof(CommandBoard)); }
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;

  [[nodiscard]] CommandBoard& get() const { return *board_; }

 private:
  void map(const char* name, int flags) {
    const int file = shm_open(name, O_RDWR | flags, 0600);
    if (file < 0 || (flags != 0 && ftruncate(file, sizeof(CommandBoard)) != 0))
      throw std::runtime_error("cannot create shared memory in /dev/shm; free some space there");
    void* const memory =
        mmap(nullptr, sizeof(CommandBoard), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot map shared memory");
    board_ = static_cast<CommandBoard*>(memory);
  }

  CommandBoard* board_ = nullptr;
};

std::string library_version() {
  std::vector<char> text(MPI_MAX_LIBRARY_VERSION_STRING);
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string version(text.data(), static_cast<std::size_t>(length));
  return version.substr(0, version.find_first_of(",\n\""));
}

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends with the launcher even if the launcher is killed
  MPI_Init(&argc, &argv);
  int provided = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::uint64_t wrong = 0;
  try {
    const peers::SharedBoard board(rank, ranks);
    peers::MpiEngine engine(rank, ranks);
    wrong = peers::serve(board.get(), rank, engine, peers::library_version());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi_collectives: rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
