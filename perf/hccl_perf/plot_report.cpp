// SPDX-License-Identifier: Apache-2.0
// From rows to lines.
#include "plot_report.h"

#include "plot.h"
#include "quantities.h"
#include "statistics.h"
#include "text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace hccl_perf {
namespace {

// Told apart by people who see colours differently, on white.
constexpr std::array<const char*, 8> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                              "#7b4ea3", "#b8860b", "#56a4d6", "#4a4a4a"};

// What a line is of, besides its placement.
using Case = std::tuple<std::string, std::string, int>;  // type, reduction, root

// Each measured value by size; more than one with -N.
struct Curve {
  std::map<std::uint64_t, std::vector<double>> bandwidth;
  std::map<std::uint64_t, std::vector<double>> nanoseconds;
};
using Curves = std::vector<std::pair<Case, std::array<Curve, 2>>>;  // [out of place, in place]

Curves curves_of(const Results& results) {
  Curves curves;
  const Averaging averaging = results.options.averaging;
  for (const Row& row : results.rows) {
    const Case key{row.type.name, row.reduction.name, row.root};
    auto found = std::find_if(curves.begin(), curves.end(),
                              [&](const auto& curve) { return curve.first == key; });
    if (found == curves.end()) found = curves.insert(found, {key, {}});
    const auto add = [&](Placement placement, const CellResult& cell) {
      Curve& curve = found->second[placement == Placement::in_place ? 1 : 0];
      const std::uint64_t size = row.counts.shown_bytes;
      curve.bandwidth[size].push_back(bandwidth(row, cell, averaging).bus);
      curve.nanoseconds[size].push_back(cell.nanoseconds.by(averaging));
    };
    add(Placement::out_of_place, row.out_of_place);
    if (row.in_place) add(Placement::in_place, *row.in_place);
  }
  return curves;
}

std::vector<PlotPoint> points(const std::map<std::uint64_t, std::vector<double>>& values) {
  std::vector<PlotPoint> found;
  found.reserve(values.size());
  for (const auto& [size, measured] : values)
    found.push_back({static_cast<double>(size), median(measured)});
  return found;
}

// The parts of a case that `shown` says, such as "float, sum".
struct Parts {
  bool type = true, reduction = true, root = true;
};

std::string name_of(const Case& key, const Parts& shown) {
  const auto& [type, reduction, root] = key;
  std::string name = shown.type ? type : "";
  const auto add = [&](const std::string& part) { name += text(name.empty() ? "" : ", ", part); };
  if (shown.reduction && reduction != kNoReduction.name) add(reduction);
  if (shown.root && root >= 0) add(text("root ", root));
  return name;
}

// Which parts differ between the cases of a sweep.
Parts varying(const Curves& curves) {
  std::set<std::string> types;
  std::set<std::string> reductions;
  std::set<int> roots;
  for (const auto& [key, curve] : curves) {
    types.insert(std::get<0>(key));
    reductions.insert(std::get<1>(key));
    roots.insert(std::get<2>(key));
  }
  return {types.size() > 1, reductions.size() > 1, roots.size() > 1};
}

// With one case the colour tells the placements apart too.
LineStyle style_of(std::size_t index, bool in_place, bool alone) {
  const std::size_t number = alone ? (in_place ? 1 : 0) : index;
  return {kColours[number % kColours.size()], in_place, number / kColours.size()};
}

std::string bandwidth_label(double value, double step) {
  const double digits = step > 0 ? std::max(0.0, -std::floor(std::log10(step) + 1e-9)) : 0.0;
  return decimal(value, static_cast<int>(digits));
}

std::string time_label(double nanoseconds, double /*step*/) {
  constexpr std::pair<const char*, double> kUnits[] = {
      {" s", 1e9}, {" ms", 1e6}, {" \u00b5s", 1e3}};
  for (const auto& [name, size] : kUnits) {
    if (nanoseconds >= size * (1 - 1e-9)) return text(decimal(nanoseconds / size, 0), name);
  }
  return text(decimal(nanoseconds, nanoseconds < 1 ? 1 : 0), " ns");
}

std::string size_label(double bytes) { return format_bytes(static_cast<std::uint64_t>(bytes)); }

std::string subtitle(const Results& results, const Curves& curves, const Parts& varies) {
  const std::string separator = "  \u00b7  ";
  std::set<std::string> hosts;
  for (const RankFacts& rank : results.ranks) hosts.insert(rank.host);
  std::string line;
  if (!curves.empty()) {
    const std::string fixed =
        name_of(curves.front().first, {!varies.type, !varies.reduction, !varies.root});
    if (!fixed.empty()) line = fixed + separator;
  }
  line += hosts.size() > 1 ? text(hosts.size(), " hosts, ", results.host.host, " with ")
                           : text(results.host.host, ", ");
  line += text(results.host.cores, results.host.cores == 1 ? " core (" : " cores (",
               results.host.cpu, ")");
  const std::string started = utc_time(results.started);  // 2026-05-01T12:34:56Z
  line += text(separator, started.substr(0, 10), " ", started.substr(11, 5), " UTC");
  return line + separator + "hccl-perf " HCCL_PERF_VERSION;
}

}  // namespace

std::string plot_text(const Results& results) {
  const Curves curves = curves_of(results);
  const Parts varies = varying(curves);
  const bool alone = curves.size() == 1;
  const bool has_in_place = results.options.collective->can_be_in_place();
  Plot plot;
  plot.title = text(results.options.collective->name, ", ", results.ranks.size(),
                    results.ranks.size() == 1 ? " rank" : " ranks");
  plot.subtitle = subtitle(results, curves, varies);
  plot.x_title = "size";
  plot.x_label = size_label;
  PlotPanel bandwidths{"Bus bandwidth (GB/s)", false, bandwidth_label, {}};
  PlotPanel times{"Time per call", true, time_label, {}};
  std::vector<LegendEntry> cases;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const auto& [key, by_placement] = curves[i];
    for (const bool in_place : {false, true}) {
      if (in_place && !has_in_place) continue;
      const Curve& curve = by_placement[in_place ? 1 : 0];
      const LineStyle style = style_of(i, in_place, alone);
      bandwidths.lines.push_back({style, points(curve.bandwidth)});
      times.lines.push_back({style, points(curve.nanoseconds)});
    }
    if (!alone) cases.push_back({style_of(i, false, alone), name_of(key, varies)});
  }
  const std::string grey = "#52606d";
  std::vector<LegendEntry> placements{
      {alone ? style_of(0, false, true) : LineStyle{grey, false, 0}, "out of place"}};
  if (has_in_place)
    placements.push_back({alone ? style_of(0, true, true) : LineStyle{grey, true, 0}, "in place"});
  plot.legend = {cases, placements};
  plot.panels = {bandwidths, times};
  return svg_text(plot);
}

}  // namespace hccl_perf
