// SPDX-License-Identifier: Apache-2.0
// Each pair of type and reduction in a matrix, in place and out of place, runs with all small
// counts. By default, it runs with only some large counts, because 16 ranks would otherwise take
// minutes.
#include "matrix.h"

#include "rank_test.h"

#include <array>

namespace hccl::test {
namespace {

constexpr std::array<std::size_t, 4> kSmallCounts{0, 1, 3, 17};
constexpr std::array<std::size_t, 3> kLargeCounts{1000, 65'537, 300'001};
constexpr std::array<std::size_t, 3> kLargeCountsOfMany{1000, 20'011, 70'001};  // 5 or more ranks
constexpr std::array<std::size_t, 3> kLargeCountsOfNodes{1000, 3001, 9001};
constexpr std::array<std::size_t, 5> kOffsets{0, 1, 3, 7, 33};
constexpr int kFullSize = 8;  // as many ranks as a node has devices

// Returns `count`, or a smaller count if the collective has a buffer of `size` blocks of `count`
// elements and that buffer would be too large.
std::size_t bounded(std::size_t count, Collective collective, int size) {
  const bool parts = collective == Collective::all_gather ||
                     collective == Collective::reduce_scatter ||
                     collective == Collective::all_to_all;
  const std::size_t most = test_scale() > 1 ? 4'000'000 : 300'000;
  return parts && count * static_cast<std::size_t>(size) > most
             ? most / static_cast<std::size_t>(size) | 1U
             : count;
}

class MatrixBuilder {
 public:
  MatrixBuilder(Collective collective, int size, const Nodes& nodes)
      : collective_(collective), size_(size), nodes_(nodes) {}

  std::vector<Operation> build() {
    for (const hcclDataType_t type : kAllTypes) {
      for (const hcclRedOp_t reduction : reductions_of(type)) {
        if (!traits(collective_).reduces && reduction != hcclSum) continue;
        if (samples() && traits(collective_).reduces && !meets(type, reduction)) continue;
        for (const bool in_place : {false, true}) add_counts(type, reduction, in_place);
      }
    }
    return operations_;
  }

 private:
  // Returns whether to run only a sample. A sanitizer checks memory, not arithmetic, so a sample
  // suffices. With more than kFullSize ranks, no type or reduction runs additional code. On several
  // nodes, each rank interprets the plans of all ranks, which would take minutes for all types and
  // reductions together. In the last two cases, HCCL_TEST_SCALE=2 runs everything.
  [[nodiscard]] bool samples() const {
    return sanitized() || ((!nodes_.of_rank.empty() || size_ > kFullSize) && test_scale() <= 1);
  }
  // Returns whether the sample includes this pair. The sample includes each type with one
  // reduction, chosen by layout and algorithm, and each bitwise reduction with one type.
  [[nodiscard]] bool meets(hcclDataType_t type, hcclRedOp_t reduction) const {
    if (reduction >= hcclEmulationBitAnd)
      return static_cast<int>(type) == reduction - hcclEmulationBitAnd;
    const std::size_t turn = nodes_.of_rank.size() + nodes_.algorithm.size();
    return (static_cast<std::size_t>(type) + turn) % kAllReductions.size() ==
           static_cast<std::size_t>(reduction);
  }

  void add_counts(hcclDataType_t type, hcclRedOp_t reduction, bool in_place) {
    for (const std::size_t count : kSmallCounts) add(type, reduction, in_place, count);
    const auto& counts = !nodes_.of_rank.empty() ? kLargeCountsOfNodes
                         : size_ < 5             ? kLargeCounts
                                                 : kLargeCountsOfMany;
    if (test_scale() > 1) {
      for (const std::size_t count : kLargeCounts) add(type, reduction, in_place, count);
    } else {
      add(type, reduction, in_place, counts[turn_ % counts.size()]);
    }
    // In host memory, the largest counts of wide types need several slices of a staging buffer.
    constexpr std::array kPlaces{Placement::host, Placement::mixed, Placement::view,
                                 Placement::pinned};
    const Placement placement = kPlaces[turn_ % kPlaces.size()];
    add(type, reduction, in_place, kSmallCounts[turn_ % kSmallCounts.size()], placement);
    add(type, reduction, in_place, counts[(turn_ + 1) % counts.size()], placement);
    ++turn_;
  }

  void add(hcclDataType_t type, hcclRedOp_t reduction, bool in_place, std::size_t count,
           Placement placement = Placement::device) {
    Operation operation{.collective = collective_,
                        .type = type,
                        .reduction = reduction,
                        .count = bounded(count, collective_, size_),
                        .in_place = in_place,
                        .placement = placement};
    if (collective_ == Collective::all_to_all) operation.count *= static_cast<std::size_t>(size_);
    operation.root = static_cast<int>(operations_.size()) % size_;
    operation.offset = kOffsets[operations_.size() % kOffsets.size()];
    operation.seed = operations_.size() * 1000;
    operation.nodes = nodes_.of_rank;
    operation.algorithm = nodes_.algorithm;
    operations_.push_back(operation);
  }

  Collective collective_;
  int size_;
  const Nodes& nodes_;
  std::size_t turn_ = 0;
  std::vector<Operation> operations_;
};

}  // namespace

std::vector<Operation> matrix_of(Collective collective, int size, const Nodes& nodes) {
  return MatrixBuilder(collective, size, nodes).build();
}

void run_operations(World& world, const std::vector<Operation>& operations,
                    const std::function<void(const Group&)>& at_end) {
  in_session([&](World&, Session& session, const Group& group, synStreamHandle stream) {
    for (const Operation& operation : operations) run_and_verify(session, group, stream, operation);
    if (at_end) at_end(group);
  })(world);
}

void run_matrix(World& world, Collective collective, const Nodes& nodes) {
  run_operations(world, matrix_of(collective, world.size, nodes));
}

void run_barriers(World& world) {
  constexpr int kRounds = 50;
  Session session(world);
  const Group group = session.join_all();
  synStreamHandle stream = session.make_stream();
  for (int round = 1; round <= kRounds; ++round) {
    world.board->counter(0).fetch_add(1);
    succeed(hcclBarrier(group.handle, stream));
    succeed(synStreamSynchronize(stream));
    const std::int64_t arrived = world.board->counter(0).load();
    require(arrived >= std::int64_t{round} * world.size,
            join("left barrier ", round, " when ", arrived, " had come"));
  }
  session.finish();
}

}  // namespace hccl::test
