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

// The subject of a line, besides its placement.
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

std::string bandwidth_label(double value, double /*step*/) {
  const double digits = std::max(0.0, -std::floor(std::log10(value) + 1e-9));
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

// Few cases share a pair of panels. If there are many, each pair shows those that differ in what
// `panels` does not name; the others are its context.
struct Facets {
  Parts panels{false, false, false};
  Parts colours;
};

Facets facets_of(const Curves& curves, const Parts& varies) {
  constexpr std::size_t kMostTogether = 4;  // cases, where nothing else is drawn
  constexpr std::size_t kMostColours = 8;
  Facets facets;
  facets.colours = varies;
  std::size_t most = kMostTogether;
  const auto together = [&] {
    std::map<std::string, std::size_t> counts;
    std::size_t largest = 0;
    for (const auto& [key, curve] : curves)
      largest = std::max(largest, ++counts[name_of(key, facets.panels)]);
    return largest;
  };
  for (bool Parts::*part : {&Parts::type, &Parts::reduction, &Parts::root}) {
    if (together() <= most) break;
    if (!(varies.*part)) continue;
    facets.panels.*part = true;
    facets.colours.*part = false;
    most = kMostColours;
  }
  return facets;
}

class PlotBuilder {
 public:
  explicit PlotBuilder(const Results& results)
      : results_(results),
        curves_(curves_of(results)),
        varies_(varying(curves_)),
        facets_(facets_of(curves_, varies_)),
        has_in_place_(results.options.collective->can_be_in_place()) {
    for (const auto& [key, curve] : curves_) {
      add_unless_known(panel_names_, name_of(key, facets_.panels));
      add_unless_known(colour_names_, name_of(key, facets_.colours));
    }
  }

  [[nodiscard]] Plot build() const {
    Plot plot;
    const std::size_t ranks = results_.ranks.size();
    plot.title =
        text(results_.options.collective->name, ", ", ranks, ranks == 1 ? " rank" : " ranks");
    plot.subtitle = subtitle(results_, curves_, varies_);
    plot.x_title = "size";
    plot.x_label = size_label;
    if (panel_names_.size() > 1) plot.columns = 4;
    if (panel_names_.empty()) add_panels(plot, "");
    for (const std::string& name : panel_names_) add_panels(plot, name);
    plot.legend = {colour_legend(), placement_legend()};
    return plot;
  }

 private:
  static void add_unless_known(std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }

  [[nodiscard]] bool alone() const { return colour_names_.size() <= 1; }

  [[nodiscard]] LineStyle style(const Case& key, bool in_place) const {
    const auto found =
        std::find(colour_names_.begin(), colour_names_.end(), name_of(key, facets_.colours));
    return style_of(static_cast<std::size_t>(found - colour_names_.begin()), in_place, alone());
  }

  // Bandwidth and time of the cases that `name` is the name of.
  void add_panels(Plot& plot, const std::string& name) const {
    const std::string before = name.empty() ? "" : name + ": ";
    PlotPanel bandwidths{text(before, name.empty() ? "Bus bandwidth (GB/s)" : "bus GB/s"),
                         true,
                         bandwidth_label,
                         {}};
    PlotPanel times{
        text(before, name.empty() ? "Time per call" : "time per call"), true, time_label, {}};
    for (const auto& [key, by_placement] : curves_) {
      const bool here = name_of(key, facets_.panels) == name;
      for (const bool in_place : {false, true}) {
        if (in_place && !has_in_place_) continue;
        const Curve& curve = by_placement[in_place ? 1 : 0];
        const LineStyle look = style(key, in_place);
        (here ? bandwidths.lines : bandwidths.context).push_back({look, points(curve.bandwidth)});
        (here ? times.lines : times.context).push_back({look, points(curve.nanoseconds)});
      }
    }
    plot.panels.push_back(bandwidths);
    plot.panels.push_back(times);
  }

  [[nodiscard]] std::vector<LegendEntry> colour_legend() const {
    std::vector<LegendEntry> entries;
    if (alone()) return entries;
    for (std::size_t i = 0; i < colour_names_.size(); ++i)
      entries.push_back({style_of(i, false, false), colour_names_[i]});
    return entries;
  }

  [[nodiscard]] std::vector<LegendEntry> placement_legend() const {
    const std::string grey = "#52606d";
    const auto look = [&](bool in_place) {
      return alone() ? style_of(0, in_place, true) : LineStyle{grey, in_place, 0};
    };
    std::vector<LegendEntry> entries{{look(false), "out of place"}};
    if (has_in_place_) entries.push_back({look(true), "in place"});
    if (panel_names_.size() > 1) entries.push_back({context_style(), "other panels"});
    return entries;
  }

  const Results& results_;
  Curves curves_;
  Parts varies_;
  Facets facets_;
  bool has_in_place_;
  std::vector<std::string> panel_names_;  // in the order of the table
  std::vector<std::string> colour_names_;
};

}  // namespace

std::string plot_text(const Results& results) { return svg_text(PlotBuilder(results).build()); }

}  // namespace hccl_perf
