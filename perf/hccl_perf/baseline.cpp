// SPDX-License-Identifier: Apache-2.0
// Reads a baseline and checks whether it is comparable with a run.
#include "baseline.h"

#include "text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

namespace hccl_perf {
namespace {

using Json = nlohmann::json;

CellKey key_of(const Row& row, Placement placement) {
  return {row.type.name, row.reduction.name, row.root, row.counts.shown_bytes, placement};
}

void add_cell(CellSamples& cells, const Json& row, const char* name, Placement placement) {
  const Json& cell = row.at(name);
  if (cell.is_null()) return;
  const auto samples = cell.at("samples_ns").get<std::vector<double>>();
  if (std::any_of(samples.begin(), samples.end(), [](double sample) { return !(sample > 0); }))
    throw UsageError("samples_ns contains a time that is not positive; record the baseline again");
  cells.add({row.at("type"), row.at("redop"), row.at("root"), row.at("size_bytes"), placement},
            samples);
}

Baseline from_json(const Json& json) {
  if (json.at("program") != "hccl-perf") throw UsageError("the file was not written by hccl-perf");
  Baseline baseline;
  baseline.collective = json.at("collective");
  baseline.ranks = json.at("ranks");
  baseline.averaging = json.at("options").at("average");
  baseline.blocking = json.at("options").at("blocking");
  baseline.started = json.at("started");
  const Json& host = json.at("host");
  baseline.host = {host.at("name"), host.at("kernel"), host.at("cpu"), host.at("cores")};
  for (const Json& row : json.at("rows")) {
    add_cell(baseline.cells, row, "out_of_place", Placement::out_of_place);
    add_cell(baseline.cells, row, "in_place", Placement::in_place);
  }
  for (const auto& [key, samples] : baseline.cells.samples) {
    if (samples.size() >= kFewestSamples) continue;
    throw UsageError(
        text("a cell of ", key.size_bytes, " bytes has ", samples.size(),
             " timed passes, too few to estimate its noise; record the baseline with --repeats ",
             kFewestSamples, " or more"));
  }
  return baseline;
}

// Strips the JSON library's bracketed error code, which does not help users, from a message.
std::string without_code(const std::string& message) {
  const std::size_t end = message.find("] ");
  return end == std::string::npos ? message : message.substr(end + 2);
}

}  // namespace

void CellSamples::add(const CellKey& key, const std::vector<double>& more) {
  const auto [found, is_new] = samples.try_emplace(key);
  if (is_new) keys.push_back(key);
  found->second.insert(found->second.end(), more.begin(), more.end());
}

CellSamples cell_samples(const std::vector<Row>& rows, Averaging averaging) {
  CellSamples cells;
  for (const Row& row : rows) {
    cells.add(key_of(row, Placement::out_of_place), row.out_of_place.samples(averaging));
    if (row.in_place) cells.add(key_of(row, Placement::in_place), row.in_place->samples(averaging));
  }
  return cells;
}

Baseline read_baseline(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return UsageError(text("--compare ", path, ": ", why));
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw refuse("it is a directory");
  std::ifstream file(path);
  if (!file) throw refuse(std::strerror(errno));
  try {
    Baseline baseline = from_json(Json::parse(file));
    baseline.path = path;
    return baseline;
  } catch (const Json::parse_error& failure) {
    throw refuse(text("invalid JSON at byte ", failure.byte));
  } catch (const Json::exception& failure) {
    throw refuse(
        text("the file does not have the form that --json writes: ", without_code(failure.what())));
  } catch (const UsageError& failure) {
    throw refuse(failure.what());
  }
}

void require_comparable(const Baseline& baseline, const Options& options, int ranks) {
  const auto refuse = [&](const auto& then, const auto& now) {
    throw UsageError(text("--compare ", baseline.path, ": the baseline was recorded with ", then,
                          ", but this run uses ", now));
  };
  if (baseline.collective != options.collective->name)
    refuse(baseline.collective, options.collective->name);
  if (baseline.ranks != ranks) refuse(text(baseline.ranks, " ranks"), ranks);
  if (baseline.averaging != averaging_name(options.averaging))
    refuse(text("-a ", baseline.averaging), averaging_name(options.averaging));
  if (baseline.blocking != static_cast<int>(options.blocking))
    refuse(text("-z ", baseline.blocking), static_cast<int>(options.blocking));
  for (const auto& [type, reduction, root, bytes] : options.cases(ranks)) {
    const Counts counts = options.collective->counts(bytes, type, ranks);
    const CellKey key{type.name, reduction.name, root, counts.shown_bytes, Placement::out_of_place};
    if (baseline.cells.samples.contains(key)) return;
  }
  throw UsageError(text("--compare ", baseline.path,
                        ": the baseline has no cell in common with this run; use the same sizes, "
                        "types, reductions and roots"));
}

}  // namespace hccl_perf
