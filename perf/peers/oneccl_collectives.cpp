// SPDX-License-Identifier: Apache-2.0
// oneCCL's side of the comparison: blocking collectives in sequence, one process for each rank.
// Implements the command protocol of command.h.
//   oneccl_collectives RANKS
#include "child.h"
#include "command.h"
#include "processes.h"
#include "session.h"
#include "shape.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <oneapi/ccl.hpp>

// A null pointer, to which the linker resolves oneCCL's function pointers for a profiler (see
// oneccl.cmake).
extern "C" void* hccl_no_profiler;
void* hccl_no_profiler = nullptr;

namespace peers {
namespace {

// The board, and the address at which the ranks of one driver find each other.
struct Meeting {
  CommandBoard board;
  ccl::kvs::address_type address{};
};

class OneCclEngine final : public Engine {
 public:
  OneCclEngine(Meeting& meeting, int rank) : rank_(rank), ranks_(meeting.board.ranks) {
    setenv("CCL_LOCAL_RANK", std::to_string(rank_).c_str(), 1);
    setenv("CCL_LOCAL_SIZE", std::to_string(ranks_).c_str(), 1);
    ccl::init();
    ccl::shared_ptr_class<ccl::kvs> store;
    if (rank_ == 0) {
      store = ccl::create_main_kvs();
      meeting.address = store->get_address();
    }
    pthread_barrier_wait(&meeting.board.barrier);
    if (rank_ != 0) store = ccl::create_kvs(meeting.address);
    comm_.emplace(ccl::create_communicator(ranks_, rank_, store));
  }

  void prepare(const Command& command) override {
    const std::size_t count = buffer_count(shape_of(command, rank_, ranks_));
    const bool grows = count > recv_.size();
    send_.resize(std::max(count, send_.size()));
    recv_.resize(std::max(count, recv_.size()));
    if (grows) ++generation_;
    fill_for_timing(command, rank_, {send_.data(), count});
    fill_for_timing(command, rank_, {recv_.data(), count});
  }

  void run(const Command& command, std::uint64_t iterations) override {
    constexpr auto kType = ccl::datatype::float32;
    constexpr auto kSum = ccl::reduction::sum;
    const Shape shape = shape_of(command, rank_, ranks_);
    const std::size_t count = shape.call_count;
    const bool gathers = command.collective == Collective::all_gather;
    float* const recv = recv_.data();
    float* const part = recv + output_offset(command, shape);
    const bool in_place =
        command.in_place && (command.collective != Collective::reduce || rank_ == 0);
    float* const send = in_place ? recv + (gathers ? shape.in_place_offset : 0) : send_.data();
    switch (command.collective) {
      case Collective::all_reduce:
        return repeat<ccl::allreduce_attr>(command, iterations, [&](const auto& attributes) {
          return ccl::allreduce(send, recv, count, kType, kSum, *comm_, attributes);
        });
      case Collective::broadcast:
        return repeat<ccl::broadcast_attr>(command, iterations, [&](const auto& attributes) {
          return ccl::broadcast(send, recv, count, kType, 0, *comm_, attributes);
        });
      case Collective::all_gather:
        return repeat<ccl::allgather_attr>(command, iterations, [&](const auto& attributes) {
          return ccl::allgather(send, recv, count, kType, *comm_, attributes);
        });
      case Collective::reduce_scatter:
        return repeat<ccl::reduce_scatter_attr>(command, iterations, [&](const auto& attributes) {
          return ccl::reduce_scatter(send, part, count, kType, kSum, *comm_, attributes);
        });
      case Collective::reduce:
        return repeat<ccl::reduce_attr>(command, iterations, [&](const auto& attributes) {
          return ccl::reduce(send, recv, count, kType, kSum, 0, *comm_, attributes);
        });
      case Collective::all_to_all:
        return repeat<ccl::alltoall_attr>(command, iterations, [&](const auto& attributes) {
          return ccl::alltoall(send, recv, count, kType, *comm_, attributes);
        });
      case Collective::barrier:
        return repeat<ccl::barrier_attr>(command, iterations, [&](const auto& attributes) {
          return ccl::barrier(*comm_, attributes);
        });
      case Collective::send_receive:
        throw std::runtime_error("this driver does not support sendrecv");
    }
  }

  std::uint64_t verify(const Command& command) override {
    prepare(command);
    const Shape shape = shape_of(command, rank_, ranks_);
    place_input(command, rank_, ranks_, send_, recv_);
    run(command, 1);
    return count_wrong(command, rank_, ranks_,
                       {recv_.data() + output_offset(command, shape), shape.recv_count});
  }

 private:
  static std::size_t output_offset(const Command& command, const Shape& shape) {
    const bool scatters = command.collective == Collective::reduce_scatter;
    return command.in_place && scatters ? shape.in_place_offset : 0;
  }

  // Makes the calls. Except for a barrier, their attributes let oneCCL cache the preparation of a
  // call and reuse it in later calls with the same name. The name includes everything on which the
  // preparation depends.
  template <typename Attributes, typename Call>
  void repeat(const Command& command, std::uint64_t iterations, Call call) {
    const std::string name = std::string(collective_name(command.collective)) +
                             (command.in_place ? " in place " : " ") +
                             std::to_string(command.bytes) + " " + std::to_string(generation_);
    auto attributes = ccl::create_operation_attr<Attributes>();
    if (command.collective != Collective::barrier) {
      attributes.template set<ccl::operation_attr_id::to_cache>(true);
      attributes.template set<ccl::operation_attr_id::match_id>(ccl::string_class(name));
    }
    for (std::uint64_t i = 0; i < iterations; ++i) call(attributes).wait();
  }

  int rank_;
  int ranks_;
  std::optional<ccl::communicator> comm_;
  std::vector<float> send_;
  std::vector<float> recv_;
  int generation_ = 0;  // counts the allocations of the buffers
};

int run_ranks(int ranks) {
  const hccl_perf::Shared<Meeting> meeting;
  initialise(meeting->board, ranks);
  return run_processes("oneccl_collectives", ranks, [&](int rank) {
    OneCclEngine engine(*meeting, rank);
    const auto version = ccl::get_library_version();
    return serve(meeting->board, rank, engine,
                 "oneCCL " + std::to_string(version.major) + "." + std::to_string(version.minor));
  });
}

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  return peers::main_of_driver("oneccl_collectives", argc, argv, peers::run_ranks);
}
