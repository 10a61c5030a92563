// SPDX-License-Identifier: Apache-2.0
// Formats the JSON file.
#include "report_formats.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace hccl_perf {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Rounds to one decimal place, which keeps the file readable.
double rounded(double value) { return std::round(value * 10.0) / 10.0; }

OrderedJson latency_json(const Latency& latency) {
  const Percentiles& time = latency.nanoseconds;
  return {{"iterations", latency.iterations}, {"min", rounded(time.minimum)},
          {"mean", rounded(time.mean)},       {"p50", rounded(time.p50)},
          {"p95", rounded(time.p95)},         {"p99", rounded(time.p99)},
          {"max", rounded(time.maximum)},     {"slowest_rank", latency.slowest_rank}};
}

// Returns how closely the elements agree with the expected ones, or null if an element is wrong or
// none was checked.
OrderedJson check_json(const CellResult& cell) {
  if (!cell.wrong || *cell.wrong > 0) return {};
  return cell.rounded > 0 ? "within rounding" : "bitwise";
}

OrderedJson traffic_json(const CellResult& cell) {
  const auto each = [&](std::uint64_t sum) {
    return rounded(static_cast<double>(sum) / static_cast<double>(cell.iterations));
  };
  OrderedJson by_rank = OrderedJson::array();
  for (const Traffic& traffic : cell.traffic) {
    by_rank.push_back({{"bytes_sent", each(traffic.bytes_sent)},
                       {"bytes_received", each(traffic.bytes_received)},
                       {"sends", each(traffic.sends)},
                       {"receives", each(traffic.receives)},
                       {"peers", traffic.peers}});
  }
  return by_rank;
}

OrderedJson overlap_json(const Overlap& overlap) {
  return {{"iterations", overlap.iterations},
          {"communication_ns", rounded(overlap.communication)},
          {"computation_ns", rounded(overlap.computation)},
          {"overall_ns", rounded(overlap.overall)},
          {"percent", rounded(overlap.percent)}};
}

OrderedJson cell_json(const Row& row, const CellResult& cell, Averaging averaging) {
  const Bandwidth rate = bandwidth(row, cell, averaging);
  const AcrossRanks& time = cell.nanoseconds;
  OrderedJson json{{"iterations", cell.iterations},
                   {"time_ns", rounded(time.by(averaging))},
                   {"time_ns_across_ranks",
                    {{"rank0", rounded(time.rank0)},
                     {"avg", rounded(time.average)},
                     {"min", rounded(time.minimum)},
                     {"max", rounded(time.maximum)},
                     {"slowest_rank", time.slowest_rank}}},
                   {"algbw_gb_per_s", rate.algorithm},
                   {"busbw_gb_per_s", rate.bus},
                   {"samples_ns", OrderedJson::array()},
                   {"wrong", cell.wrong ? OrderedJson(*cell.wrong) : OrderedJson()},
                   {"check", check_json(cell)},
                   {"traffic_per_call_by_rank", traffic_json(cell)}};
  for (const double sample : cell.samples(averaging)) json["samples_ns"].push_back(rounded(sample));
  if (cell.latency) json["latency_ns"] = latency_json(*cell.latency);
  if (const auto messages = messages_per_second(row, cell, averaging))
    json["messages_per_s"] = rounded(*messages);
  if (cell.overlap) json["overlap"] = overlap_json(*cell.overlap);
  return json;
}

OrderedJson row_json(const Row& row, Averaging averaging) {
  return {{"size_bytes", row.counts.shown_bytes},
          {"count", row.counts.call},
          {"type", row.type.name},
          {"redop", row.reduction.name},
          {"root", row.root},
          {"algorithm", row.out_of_place.how().algorithm},
          {"transport", row.out_of_place.how().transport},
          {"out_of_place", cell_json(row, row.out_of_place, averaging)},
          {"in_place", row.in_place ? cell_json(row, *row.in_place, averaging) : OrderedJson()}};
}

OrderedJson options_json(const Options& options) {
  return {{"min_bytes", options.min_bytes},
          {"max_bytes", options.max_bytes},
          {"step_bytes", options.step_bytes},
          {"step_factor", options.step_factor},
          {"processes", options.processes},
          {"threads", options.threads},
          {"nodes", options.nodes},
          {"iterations", options.iterations},
          {"warmup_iterations", options.warmup},
          {"min_time_s", options.min_time},
          {"repeats", options.repeats},
          {"blocking", static_cast<int>(options.blocking)},
          {"cycles", options.cycles},
          {"checked_runs", options.checks},
          {"redop", options.reduction_name},
          {"type", options.type_name},
          {"root", options.all_roots ? OrderedJson("all") : OrderedJson(options.root)},
          {"average", averaging_name(options.averaging)},
          {"latency_iterations", options.latency_iterations},
          {"timeout_s", options.timeout}};
}

OrderedJson rank_json(const RankFacts& rank) {
  return {{"rank", rank.rank},
          {"pid", rank.pid},
          {"host", rank.host},
          {"node", rank.node[0] == '\0' ? OrderedJson() : OrderedJson(rank.node)},
          {"module_id", rank.module_id},
          {"device", rank.device}};
}

OrderedJson host_json(const HostFacts& host) {
  const CgroupLimits& limits = host.limits;
  return {{"name", host.host},
          {"kernel", host.kernel},
          {"cpu", host.cpu},
          {"cores", host.cores},
          {"memory_bytes", host.memory_bytes},
          {"cgroup_cpus", limits.cpus ? OrderedJson(*limits.cpus) : OrderedJson()},
          {"cgroup_memory_bytes",
           limits.memory_bytes ? OrderedJson(*limits.memory_bytes) : OrderedJson()}};
}

OrderedJson environment_json(const std::vector<Variable>& variables) {
  OrderedJson json = OrderedJson::object();
  for (const Variable& variable : variables) json[variable.name] = variable.value;
  return json;
}

}  // namespace

std::string json_text(const Results& results) {
  OrderedJson json{{"program", "hccl-perf"},
                   {"version", HCCL_PERF_VERSION},
                   {"started", utc_time(results.started)},
                   {"collective", results.options.collective->name},
                   {"ranks", results.ranks.size()},
                   {"hccl_headers", HCCL_VERSION_CODE},
                   {"hccl_library", results.library.version},
                   {"library_release", results.library.release},
                   {"library_path", results.library.path},
                   {"argv", results.options.command_line},
                   {"environment", environment_json(results.variables)},
                   {"host", host_json(results.host)},
                   {"options", options_json(results.options)}};
  json["devices"] = OrderedJson::array();
  for (const RankFacts& rank : results.ranks) json["devices"].push_back(rank_json(rank));
  json["rows"] = OrderedJson::array();
  for (const Row& row : results.rows)
    json["rows"].push_back(row_json(row, results.options.averaging));
  json["wrong"] = results.totals.wrong();
  json["avg_busbw_gb_per_s"] = results.totals.average_bus_bandwidth();
  return json.dump(2) + "\n";
}

}  // namespace hccl_perf
