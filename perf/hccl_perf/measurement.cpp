// SPDX-License-Identifier: Apache-2.0
// Runs the passes of a cell.
#include "measurement.h"

#include "call_times.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace hccl_perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLatencySeconds = 1.0;  // limits the number of calls (see affordable_calls())
constexpr std::uint64_t kFewestLatencyCalls = 10;
constexpr std::uint64_t kMostRawCalls =
    10'000;  // maximum in the pass that records an event after every call

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

}  // namespace

std::uint64_t iterations_for(double min_time, std::uint64_t iterations, double seconds) {
  constexpr double kMargin = 1.1;
  constexpr double kMostGrowth = 1000.0;  // limits the extrapolation from a very short pass
  const double growth =
      seconds > 0 ? std::min(min_time / seconds * kMargin, kMostGrowth) : kMostGrowth;
  const double wanted = std::ceil(static_cast<double>(iterations) * growth);
  return std::max(iterations + 1, static_cast<std::uint64_t>(wanted));
}

std::vector<double> CellResult::samples(Averaging averaging) const {
  std::vector<double> times;
  times.reserve(passes.size());
  for (const AcrossRanks& pass : passes) times.push_back(pass.by(averaging));
  return times;
}

Measurement::Measurement(const Options& options, Session& session, RankExchange& exchange,
                         Verification& verification, std::function<void(Phase)> announce)
    : options_(options),
      session_(session),
      exchange_(exchange),
      verification_(verification),
      announce_(std::move(announce)),
      meter_(session.traffic_meter()) {}

void Measurement::add_pass(const Cell& cell, CellResult& result) {
  announce_(Phase::filling);
  verification_.prepare(cell, ++run_);
  warm_up(cell);
  time_cell(cell, result);
}

void Measurement::complete(const Cell& cell, CellResult& result) {
  check(cell, result);
  warm_up(cell);
  time_cell(cell, result);
  result.traffic = exchange_.gather(meter_.total());
  result.nanoseconds = result.passes[median_position(result.samples(options_.averaging))];
  if (options_.wants_latency()) {
    announce_(Phase::latency);
    measure_latency(cell, result);
  }
  if (options_.overlap) {
    announce_(Phase::latency);
    measure_overlap(cell, result);
  }
  if (!options_.raw_path.empty()) measure_each_queued_call(cell, result);
}

void Measurement::warm_up(const Cell& cell) {
  announce_(Phase::warming_up);
  for (std::uint64_t i = 0; i < options_.warmup; ++i) session_.enqueue(cell.call);
  session_.synchronize();
}

void Measurement::check(const Cell& cell, CellResult& result) {
  announce_(Phase::filling);
  verification_.prepare(cell, ++run_);
  if (options_.checks == 0 || !cell.call.collective->moves_data()) return;
  Agreement all;
  for (std::uint64_t i = 0; i < options_.checks; ++i) {
    if (i > 0) verification_.prepare(cell, ++run_);
    announce_(Phase::checking);
    const Agreement own = verification_.run_checked(cell, run_);
    own_wrong_ += own.wrong;
    for (const Agreement& each : exchange_.gather(own)) all.add(each);
  }
  result.wrong = all.wrong;
  result.rounded = all.rounded;
}

// Returns the nanoseconds that `iterations` calls take on this rank, and counts their traffic.
// Excludes the barriers between the calls, which use the same communicator and cost about as much
// as a small call.
double Measurement::run_iterations(const Cell& cell, std::uint64_t iterations) {
  double nanoseconds = 0;
  meter_.start();
  Clock::time_point start = Clock::now();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    session_.enqueue(cell.call);
    if (options_.blocking == Blocking::none) continue;
    session_.synchronize();
    if (!options_.barrier_between_calls()) continue;
    nanoseconds += nanoseconds_since(start);
    meter_.pause();
    exchange_.barrier();
    meter_.resume();
    start = Clock::now();
  }
  session_.synchronize();
  nanoseconds += nanoseconds_since(start);
  if (!options_.barrier_between_calls()) meter_.pause();
  return nanoseconds;
}

AcrossRanks Measurement::time_iterations(const Cell& cell, std::uint64_t iterations) {
  exchange_.barrier();
  const double messages =
      static_cast<double>(iterations) * cell.call.collective->messages_in_turn();
  const double each = run_iterations(cell, iterations) / messages;
  return across_ranks(exchange_.gather(each));
}

void Measurement::time_cell(const Cell& cell, CellResult& result) {
  announce_(Phase::timing);
  result.iterations = std::max(options_.iterations, result.iterations);
  AcrossRanks pass = time_iterations(cell, result.iterations);
  const double messages = cell.call.collective->messages_in_turn();
  const auto seconds = [&] {
    return pass.maximum * messages * static_cast<double>(result.iterations) / 1e9;
  };
  // All ranks have the same times and therefore make the same decision.
  while (seconds() < options_.min_time) {
    result.iterations = iterations_for(options_.min_time, result.iterations, seconds());
    pass = time_iterations(cell, result.iterations);
  }
  result.passes.push_back(pass);
}

// Returns the number of calls that take about kLatencySeconds, but at least kFewestLatencyCalls.
// The latency and overlap passes make at most this many calls.
std::uint64_t Measurement::affordable_calls(const Cell& cell, const CellResult& result) {
  const double call = result.nanoseconds.maximum * cell.call.collective->messages_in_turn();
  const double affordable = kLatencySeconds * 1e9 / std::max(call, 1.0);
  return std::max(kFewestLatencyCalls, static_cast<std::uint64_t>(affordable));
}

void Measurement::measure_overlap(const Cell& cell, CellResult& result) {
  const std::uint64_t iterations =
      std::min(options_.latency_iterations, affordable_calls(cell, result));
  result.overlap =
      OverlapMeasurement(session_, exchange_, options_.averaging).measure(cell.call, iterations);
}

void Measurement::measure_latency(const Cell& cell, CellResult& result) {
  const std::uint64_t iterations =
      std::min(options_.latency_iterations, affordable_calls(cell, result));
  std::vector<double> mine;
  mine.reserve(iterations);
  exchange_.barrier();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    const Clock::time_point start = Clock::now();
    session_.enqueue(cell.call);
    session_.synchronize();
    mine.push_back(nanoseconds_since(start) / cell.call.collective->messages_in_turn());
  }
  std::vector<std::vector<double>> by_rank = exchange_.gather_samples(mine);
  result.latency = summarise_latency(by_rank);
  if (session_.rank() == 0 && !options_.raw_path.empty()) result.raw.single = std::move(by_rank);
}

Latency Measurement::summarise_latency(const std::vector<std::vector<double>>& by_rank) const {
  const std::size_t iterations = by_rank.front().size();
  std::vector<double> combined;
  std::vector<double> means;
  means.reserve(by_rank.size());
  for (std::size_t i = 0; i < iterations; ++i) {
    std::vector<double> one;
    one.reserve(by_rank.size());
    for (const auto& samples : by_rank) one.push_back(samples[i]);
    combined.push_back(across_ranks(one).by(options_.averaging));
  }
  for (const auto& samples : by_rank) means.push_back(percentiles(samples).mean);
  return {iterations, percentiles(combined), across_ranks(means).slowest_rank};
}

// Measures in a separate pass, because the events between the calls take time.
void Measurement::measure_each_queued_call(const Cell& cell, CellResult& result) {
  const std::uint64_t calls = std::min(options_.iterations, kMostRawCalls);
  announce_(Phase::timing);
  CallTimes times(session_, calls);
  exchange_.barrier();
  times.mark();
  for (std::uint64_t i = 0; i < calls; ++i) {
    session_.enqueue(cell.call);
    times.mark();
  }
  session_.synchronize();
  std::vector<double> mine = times.nanoseconds();
  for (double& each : mine) each /= cell.call.collective->messages_in_turn();
  std::vector<std::vector<double>> by_rank = exchange_.gather_samples(mine);
  if (session_.rank() == 0) result.raw.queued = std::move(by_rank);
}

}  // namespace hccl_perf
