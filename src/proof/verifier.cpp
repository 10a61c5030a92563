// SPDX-License-Identifier: Apache-2.0
// Checks the form and the cost of each schedule, then the results of a symbolic execution.
#include "proof/verifier.h"

#include "base/text.h"
#include "proof/symbolic_execution.h"
#include "schedule/printer.h"

#include <algorithm>
#include <array>

namespace hccl::proof {

using schedule::Action;

namespace {

using Reason = std::optional<std::string>;

// ---- form

bool in_bounds(const Shape& shape, const Schedule& schedule, const Span& span) {
  const std::uint64_t end = std::uint64_t{span.first_chunk} + span.chunk_count;
  if (span.chunk_count == 0) return true;
  if (span.role == Role::input) return shape.has_input() && end <= schedule.input_chunks;
  if (span.role == Role::output) return shape.has_output() && end <= schedule.output_chunks;
  return std::uint64_t{span.slot} + span.chunk_count <= schedule.scratch_chunks &&
         end <= std::max(schedule.input_chunks, schedule.output_chunks);
}

bool same_lengths(const Schedule& schedule, const Span& a, const Span& b) {
  if (a.chunk_count != b.chunk_count) return false;
  return a.chunk_count == 0 ||
         a.first_chunk % schedule.block_chunks == b.first_chunk % schedule.block_chunks;
}

Reason form_of_transfer(const Shape& shape, const Schedule& schedule, const Transfer& transfer,
                        bool receives) {
  const bool local = transfer.peer == shape.rank;
  if (transfer.peer < 0 || transfer.peer >= shape.rank_count || (local && !receives))
    return text("has a transfer with rank ", transfer.peer,
                ", which is this rank or does not exist");
  if (!in_bounds(shape, schedule, transfer.span))
    return text(text_of(transfer.span), " does not exist");
  if (!receives) return std::nullopt;
  if (transfer.span.role == Role::input && transfer.span.chunk_count > 0)
    return text("writes ", text_of(transfer.span));
  if (!local && transfer.action == Action::store) return std::nullopt;
  if (!in_bounds(shape, schedule, transfer.operand))
    return text(text_of(transfer.operand), " does not exist");
  if (!same_lengths(schedule, transfer.span, transfer.operand))
    return text(text_of(transfer.span), " and ", text_of(transfer.operand), " differ in length");
  return std::nullopt;
}

bool right_sizes(const Shape& shape, const Schedule& schedule, std::uint32_t block_chunks) {
  return schedule.block_chunks == block_chunks &&
         schedule.input_chunks == block_chunks * shape.blocks_in_input() &&
         schedule.output_chunks == block_chunks * shape.blocks_in_output();
}

std::optional<Violation> form(const Shape& shape, const Schedule& schedule,
                              std::uint32_t block_chunks) {
  if (!right_sizes(shape, schedule, block_chunks))
    return Violation{Property::well_formed,
                     text("rank ", shape.rank, ": divides its message differently from rank 0")};
  for (std::uint32_t number = 0; number < schedule.steps.size(); ++number) {
    const Step& step = schedule.steps[number];
    Reason reason;
    for (const bool receives : {false, true}) {
      for (const Transfer& transfer : receives ? schedule.receives(step) : schedule.sends(step)) {
        if (!reason) reason = form_of_transfer(shape, schedule, transfer, receives);
      }
    }
    if (reason)
      return Violation{Property::well_formed,
                       text("rank ", shape.rank, ", step ", number, ": ", *reason)};
  }
  return std::nullopt;
}

// ---- results

// The sums that the ranks' outputs must have.
class Expectation {
 public:
  Expectation(const Shape& shape, const Schedule& schedule)
      : shape_(shape), does_(traits(shape.collective)), block_chunks_(schedule.block_chunks) {
    if (!does_.reduces) return;
    sums_.resize(schedule.input_chunks);
    for (std::uint32_t chunk = 0; chunk < schedule.input_chunks; ++chunk) {
      for (std::int32_t rank = 0; rank < shape.rank_count; ++rank)
        sums_[chunk] += contribution(rank, chunk, 0).sum;
    }
  }

  [[nodiscard]] std::uint64_t sum(std::int32_t rank, std::uint32_t chunk) const {
    const std::uint32_t own = static_cast<std::uint32_t>(rank) * block_chunks_;
    const std::uint32_t in_block = does_.has_blocks_in_output ? chunk % block_chunks_ : chunk;
    const std::uint32_t input = does_.has_blocks_in_input ? own + in_block : in_block;
    if (does_.reduces) return sums_[input];
    const auto block = static_cast<std::int32_t>(chunk / block_chunks_);
    return contribution(does_.has_blocks_in_output ? block : shape_.root, input, 0).sum;
  }

 private:
  const Shape& shape_;
  const CollectiveTraits& does_;
  std::uint32_t block_chunks_;
  std::vector<std::uint64_t> sums_;  // for each input chunk, over all ranks
};

bool all_hold_the_same(Collective collective) {
  const CollectiveTraits& does = traits(collective);
  return does.receivers == RankSet::everybody && !does.has_blocks_in_input;
}

std::optional<Violation> barrier_results(const SymbolicExecution& run,
                                         std::span<const Shape> shapes) {
  for (const Shape& shape : shapes) {
    const auto& reached_by = run.reached_by(shape.rank);
    const auto missing = std::find(reached_by.begin(), reached_by.end(), false);
    if (missing != reached_by.end())
      return Violation{Property::exactly_once,
                       text("rank ", shape.rank, " leaves the barrier before rank ",
                            missing - reached_by.begin(), " has arrived")};
  }
  return std::nullopt;
}

std::optional<Violation> results(const SymbolicExecution& run, std::span<const Shape> shapes,
                                 std::span<const Schedule> schedules) {
  const Collective collective = shapes[0].collective;
  if (collective == Collective::barrier) return barrier_results(run, shapes);
  const Expectation expected(shapes[0], schedules[0]);
  const std::uint32_t chunks = schedules[0].output_chunks;
  std::vector<std::uint64_t> trees(chunks);
  for (const Shape& shape : shapes) {
    if (!shape.has_output()) continue;
    const Schedule& schedule = schedules[static_cast<std::size_t>(shape.rank)];
    const Location place = location_of(shape, schedule, {Role::output, 0, chunks, 0});
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const Cell cell = run.memory(shape.rank).read(place, chunk);
      if (cell.tree == 0 || cell.sum != expected.sum(shape.rank, chunk))
        return Violation{Property::exactly_once, text("rank ", shape.rank, ": output[", chunk,
                                                      "] does not contain each contribution once")};
      if (trees[chunk] == 0) trees[chunk] = cell.tree;
      if (all_hold_the_same(collective) && trees[chunk] != cell.tree)
        return Violation{Property::same_bits,
                         text("rank ", shape.rank, ": output[", chunk,
                              "] was reduced in a different order than on lower ranks")};
    }
  }
  return std::nullopt;
}

// ---- cost

struct Usage {
  std::uint64_t sent = 0;  // chunks
  std::uint64_t received = 0;
  std::vector<std::int32_t> peers{};
};

Usage usage_of(const Shape& shape, const Schedule& schedule) {
  Usage cost;
  for (const Step& step : schedule.steps) {
    for (const Transfer& transfer : schedule.sends(step)) {
      cost.sent += transfer.span.chunk_count;
      cost.peers.push_back(transfer.peer);
    }
    for (const Transfer& transfer : schedule.receives(step)) {
      if (transfer.peer == shape.rank) continue;
      cost.received += transfer.span.chunk_count;
      cost.peers.push_back(transfer.peer);
    }
  }
  std::sort(cost.peers.begin(), cost.peers.end());
  cost.peers.erase(std::unique(cost.peers.begin(), cost.peers.end()), cost.peers.end());
  return cost;
}

struct Quantity {
  const char* name;
  double value;
  double limit;

  [[nodiscard]] bool exceeds() const {
    constexpr double kRounding = 1e-9;
    return value > limit * (1 + kRounding);
  }
  [[nodiscard]] std::string text() const {
    return hccl::text(value, " ", name, ", more than the bound of ", limit);
  }
};

std::optional<Violation> cost(const Shape& shape, const Schedule& schedule, const Bound& bound) {
  const Usage cost = usage_of(shape, schedule);
  const double block = std::max(schedule.block_chunks, 1U);
  const std::array<Quantity, 4> quantities = {
      {{"steps", static_cast<double>(schedule.steps.size()), bound.steps},
       {"blocks sent", static_cast<double>(cost.sent) / block, bound.sent},
       {"blocks received", static_cast<double>(cost.received) / block, bound.received},
       {"peers", static_cast<double>(cost.peers.size()), bound.peers}}};
  for (const Quantity& quantity : quantities) {
    if (quantity.exceeds())
      return Violation{Property::within_bound, text("rank ", shape.rank, ": ", quantity.text())};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> verify(std::span<const Shape> shapes, std::span<const Schedule> schedules,
                                const Bound& bound) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (auto violation = form(shapes[i], schedules[i], schedules[0].block_chunks)) return violation;
    if (auto violation = cost(shapes[i], schedules[i], bound)) return violation;
  }
  SymbolicExecution run(shapes, schedules);
  if (auto violation = run.run()) return violation;
  const Quantity hops{"hops", static_cast<double>(run.hops()), bound.hops};
  if (hops.exceeds()) return Violation{Property::within_bound, hops.text()};
  return results(run, shapes, schedules);
}

}  // namespace hccl::proof
