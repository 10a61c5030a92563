// SPDX-License-Identifier: Apache-2.0
// Building and writing the JSON file.
#include "json_report.h"

#include "text.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace hccl_perf {
namespace {

using Json = nlohmann::ordered_json;

// Tenths of a nanosecond are enough, and keep the file readable.
double rounded(double value) { return std::round(value * 10.0) / 10.0; }

Json latency_json(const Latency& latency) {
  const Percentiles& time = latency.nanoseconds;
  return {{"iterations", latency.iterations}, {"min", rounded(time.minimum)},
          {"mean", rounded(time.mean)},       {"p50", rounded(time.p50)},
          {"p95", rounded(time.p95)},         {"p99", rounded(time.p99)},
          {"max", rounded(time.maximum)},     {"slowest_rank", latency.slowest_rank}};
}

Json cell_json(const Row& row, const CellResult& cell, Averaging averaging) {
  const Bandwidth rate = bandwidth(row, cell, averaging);
  const AcrossRanks& time = cell.nanoseconds;
  Json json{{"iterations", cell.iterations},
            {"time_ns", rounded(time.by(averaging))},
            {"time_ns_across_ranks",
             {{"rank0", rounded(time.rank0)},
              {"avg", rounded(time.average)},
              {"min", rounded(time.minimum)},
              {"max", rounded(time.maximum)},
              {"slowest_rank", time.slowest_rank}}},
            {"algbw_gb_per_s", rate.algorithm},
            {"busbw_gb_per_s", rate.bus},
            {"wrong", cell.wrong ? Json(*cell.wrong) : Json()}};
  if (cell.latency) json["latency_ns"] = latency_json(*cell.latency);
  return json;
}

Json row_json(const Row& row, Averaging averaging) {
  return {{"size_bytes", row.counts.shown_bytes},
          {"count", row.counts.call},
          {"type", row.type.name},
          {"redop", row.reduction.name},
          {"root", row.root},
          {"algorithm", row.algorithm},
          {"out_of_place", cell_json(row, row.out_of_place, averaging)},
          {"in_place", row.in_place ? cell_json(row, *row.in_place, averaging) : Json()}};
}

Json options_json(const Options& options) {
  constexpr const char* kAveraging[] = {"rank0", "avg", "min", "max"};
  return {{"min_bytes", options.min_bytes},
          {"max_bytes", options.max_bytes},
          {"step_bytes", options.step_bytes},
          {"step_factor", options.step_factor},
          {"processes", options.processes},
          {"threads", options.threads},
          {"iterations", options.iterations},
          {"warmup_iterations", options.warmup},
          {"min_time_s", options.min_time},
          {"cycles", options.cycles},
          {"checked_runs", options.checks},
          {"redop", options.reduction_name},
          {"type", options.type_name},
          {"root", options.all_roots ? Json("all") : Json(options.root)},
          {"average", kAveraging[static_cast<int>(options.averaging)]},
          {"latency_iterations", options.latency_iterations},
          {"timeout_s", options.timeout}};
}

Json rank_json(const RankFacts& rank) {
  return {{"rank", rank.rank},
          {"pid", rank.pid},
          {"host", rank.host},
          {"module_id", rank.module_id},
          {"device", rank.device}};
}

bool is_special(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

// The file a link leads to, whether that exists or not, so that the link stays one.
std::string target_of(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::filesystem::path target = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(target, error); ++i) {
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
  }
  return target.string();
}

// Beside the target, so that a rename is enough.
std::string temporary_for(const std::string& target) { return text(target, ".tmp.", getpid()); }

}  // namespace

void require_writable(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return UsageError(text("--json: cannot write ", path, ": ", why));
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw refuse("it is a directory");
  if (is_special(path)) {
    if (access(path.c_str(), W_OK) != 0) throw refuse(std::strerror(errno));
    return;
  }
  const std::string temporary = temporary_for(target_of(path));
  const std::ofstream file(temporary);
  if (!file) throw refuse(std::strerror(errno));
  unlink(temporary.c_str());
}

JsonReport::JsonReport(const Options& options, int library, std::vector<RankFacts> ranks)
    : options_(options), library_(library), ranks_(std::move(ranks)), host_(host_facts()) {}

std::string JsonReport::to_text(const Totals& totals) const {
  Json json{{"program", "hccl-perf"},
            {"version", HCCL_PERF_VERSION},
            {"collective", options_.collective->name},
            {"ranks", ranks_.size()},
            {"hccl_headers", HCCL_VERSION_CODE},
            {"hccl_library", library_},
            {"host",
             {{"name", host_.host},
              {"kernel", host_.kernel},
              {"cpu", host_.cpu},
              {"cores", host_.cores}}},
            {"options", options_json(options_)}};
  json["devices"] = Json::array();
  for (const RankFacts& rank : ranks_) json["devices"].push_back(rank_json(rank));
  json["rows"] = Json::array();
  for (const Row& row : rows_) json["rows"].push_back(row_json(row, options_.averaging));
  json["wrong"] = totals.wrong();
  json["avg_busbw_gb_per_s"] = totals.average_bus_bandwidth();
  return json.dump(2) + "\n";
}

void JsonReport::write(const Totals& totals) const {
  const bool direct = is_special(options_.json_path);
  const std::string target = direct ? options_.json_path : target_of(options_.json_path);
  const std::string written_to = direct ? target : temporary_for(target);
  std::ofstream file(written_to);
  file << to_text(totals);
  file.close();
  const bool complete =
      !file.fail() && (direct || std::rename(written_to.c_str(), target.c_str()) == 0);
  if (complete) return;
  const std::string why = std::strerror(errno);
  if (!direct) unlink(written_to.c_str());
  throw RunError(text("--json: cannot write ", target, ": ", why));
}

}  // namespace hccl_perf
