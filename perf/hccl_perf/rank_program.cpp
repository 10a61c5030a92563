// SPDX-License-Identifier: Apache-2.0
// Runs the sweep of a rank.
#include "rank_program.h"

#include "host_facts.h"
#include "launch_environment.h"
#include "measurement.h"
#include "plan.h"
#include "quantities.h"
#include "reporter.h"
#include "text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include <unistd.h>

namespace hccl_perf {
namespace {

RankFacts facts_of(const Session& session) {
  RankFacts facts{.rank = session.rank(), .pid = getpid(), .module_id = session.module_id()};
  std::snprintf(facts.host, sizeof facts.host, "%s", host_facts().host.c_str());
  const char* node = value_of(&std::getenv, "HCCL_NODE_ID");
  std::snprintf(facts.node, sizeof facts.node, "%s", node == nullptr ? "" : node);
  std::snprintf(facts.device, sizeof facts.device, "%s", session.device_name().c_str());
  return facts;
}

class Sweep {
 public:
  Sweep(const Options& options, const RankPlace& place, Board& board, Session& session)
      : options_(options),
        place_(place),
        line_(board.record(place.rank)),
        session_(session),
        exchange_(session),
        verification_(session, exchange_, board, place.board_shared_by_all),
        workload_(session, *options.collective, options.max_bytes, options.types),
        measurement_(options, session, exchange_, verification_,
                     [this](Phase phase) { announce(phase); }) {
    if (options.plan_rank) return;
    const std::vector<RankFacts> ranks = exchange_.gather(facts_of(session));
    if (place.rank == 0) reporter_.emplace(options, place.baseline, ranks);
  }

  void run() {
    if (options_.plan_rank) return print_plan();
    for (std::uint64_t cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle)
      run_cycle();
    line_.phase = Phase::ending;
    exchange_.barrier();
    if (reporter_) reporter_->finish();
  }

  [[nodiscard]] RankOutcome outcome() const {
    return {std::max(wrong_, measurement_.own_wrong()), reporter_ && reporter_->slower()};
  }

 private:
  void print_plan() {
    if (*options_.plan_rank == place_.rank) {
      std::fputs(plans(options_, session_).c_str(), stdout);
      std::fflush(stdout);
    }
    line_.phase = Phase::ending;
    exchange_.barrier();
  }

  // Runs the whole sweep for each timed pass, so that a short disturbance affects only one pass of
  // a cell. Shows a row after its last pass.
  void run_cycle() {
    const std::vector<RowCase> cases = options_.cases(place_.ranks);
    std::vector<Row> rows;
    if (options_.repeats > 1) {
      for (const RowCase& each : cases) rows.push_back(row_of(each));
    }
    for (std::uint64_t pass = 1; pass < options_.repeats; ++pass) {
      for (std::size_t i = 0; i < cases.size(); ++i)
        run_cells(cases[i], rows[i], &Measurement::add_pass);
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Row row = rows.empty() ? row_of(cases[i]) : std::move(rows[i]);
      run_cells(cases[i], row, &Measurement::complete);
      wrong_ += row.wrong();
      if (reporter_) reporter_->row(row);
    }
  }

  [[nodiscard]] Row row_of(const RowCase& each) const {
    Row row;
    row.collective = options_.collective;
    row.ranks = place_.ranks;
    row.counts = options_.collective->counts(each.bytes, each.type, place_.ranks);
    row.type = each.type;
    row.reduction = each.reduction;
    row.root = each.root;
    if (options_.collective->can_be_in_place()) row.in_place.emplace();
    return row;
  }

  // Runs both placements of a row.
  void run_cells(const RowCase& each, Row& row,
                 void (Measurement::*measure)(const Cell&, CellResult&)) {
    line_.row_bytes = row.counts.shown_bytes;
    const auto run = [&](Placement placement, CellResult& result) {
      (measurement_.*measure)(
          workload_.cell(placement, each.bytes, each.type, each.reduction, each.root), result);
    };
    run(Placement::out_of_place, row.out_of_place);
    if (row.in_place) run(Placement::in_place, *row.in_place);
  }

  void announce(Phase phase) {
    line_.phase = phase;
    if (reporter_) reporter_->announce(phase, line_.row_bytes);
  }

  const Options& options_;
  RankPlace place_;
  RankRecord& line_;
  Session& session_;
  RankExchange exchange_;
  Verification verification_;
  Workload workload_;
  std::optional<Reporter> reporter_;
  Measurement measurement_;
  std::uint64_t wrong_ = 0;
};

}  // namespace

RankOutcome run_rank(const Options& options, const RankPlace& place, Board& board,
                     const Session::GetId& get_id) {
  RankRecord& line = board.record(place.rank);
  line.pid = getpid();
  line.phase = Phase::initialising;
  Session session(place.rank, place.ranks, place.local_rank, get_id, line.calls);
  RankOutcome outcome;
  {
    Sweep sweep(options, place, board, session);
    sweep.run();
    outcome = sweep.outcome();
  }
  session.finish();
  return outcome;
}

std::uint64_t shared_expected_bytes(const Options& options) {
  const bool shared = options.checks > 0 && options.collective->kind == CollectiveKind::all_reduce;
  return shared ? options.max_bytes : 0;
}

void require_ranks(const Options& options, int ranks) {
  const auto require = [&](const char* option, int rank) {
    if (rank < ranks) return;
    throw UsageError(text(option, ' ', rank, ": there ",
                          ranks == 1 ? "is only rank 0" : text("are only ranks 0 to ", ranks - 1)));
  };
  if (options.collective->between_pairs() && ranks % 2 != 0) {
    throw UsageError(text(options.collective->name,
                          " pairs rank i with rank i + N/2 and needs an even ",
                          "number of ranks, not ", ranks, "; give -g ", ranks + 1));
  }
  if (options.collective->has_root) require("-r", options.root);
  if (options.plan_rank) require("--plan", *options.plan_rank);
}

void require_memory(const Options& options, int ranks, int local_ranks, bool board_shared_by_all) {
  if (!options.collective->moves_data()) return;
  const std::uint64_t per_rank =
      device_bytes(*options.collective, options.max_bytes, options.types, ranks);
  const double needed =
      static_cast<double>(per_rank) * local_ranks +
      static_cast<double>(board_shared_by_all ? shared_expected_bytes(options) : 0);
  const std::uint64_t available = available_memory();
  if (available == 0 || needed <= static_cast<double>(available)) return;
  constexpr double kLargest = 9.0e18;
  throw UsageError(text(
      "-e ", format_bytes(options.max_bytes), " with ", local_ranks, " ranks on this host needs ",
      format_bytes(static_cast<std::uint64_t>(std::min(needed, kLargest))), " of memory, but only ",
      format_bytes(available), " is available; use a smaller -e or fewer ranks"));
}

}  // namespace hccl_perf
