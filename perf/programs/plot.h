// SPDX-License-Identifier: Apache-2.0
// Line charts as SVG: panels in rows over one axis of sizes, logarithmic, or of steps, with a
// legend below. One self-contained file, with a background of its own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hccl_perf {

struct LineStyle {
  std::string colour;  // as CSS writes it
  bool dashed = false;
  std::size_t marker = 0;  // a number below kMarkers; filled on solid lines
};
inline constexpr std::size_t kMarkers = 4;

struct PlotPoint {
  double x = 0;  // above 0
  double y = 0;  // above 0 on a logarithmic axis; others are left out
};

struct PlotLine {
  LineStyle style;
  std::vector<PlotPoint> points;  // by rising x
};

struct PlotPanel {
  std::string title;
  bool logarithmic = false;                                 // y
  std::string (*y_label)(double y, double step) = nullptr;  // `step`: between ticks, 0 if uneven
  std::vector<PlotLine> lines;
  std::vector<PlotLine>
      context{};  // drawn in grey behind them, for comparison; belongs to the axes
};

// How context lines look.
[[nodiscard]] LineStyle context_style();

struct LegendEntry {
  LineStyle style;
  std::string label;
};

struct Plot {
  std::string title;
  std::string subtitle;
  std::string x_title;
  std::string (*x_label)(double x) = nullptr;
  bool counted_x = false;   // x counts something, from 0; else it doubles
  std::size_t columns = 2;  // panels in a row; with more than 2 they are small
  std::vector<PlotPanel> panels;
  std::vector<std::vector<LegendEntry>> legend;  // groups, each begins a line
};

[[nodiscard]] std::string svg_text(const Plot& plot);

// Where ticks go: few, even and round. The axis is [first, last], which encloses [least, most].
struct Ticks {
  double first = 0;
  double last = 1;
  double step = 0;  // 0 if uneven
  std::vector<double> at;
};

// From 0, at least `least_step` apart.
[[nodiscard]] Ticks linear_ticks(double most, double least_step = 0);
[[nodiscard]] Ticks decade_ticks(double least, double most);  // 1, 10, 100 or 1, 2, 5, 10
// At most `count` and one powers of two; the ends are as they are.
[[nodiscard]] Ticks binary_ticks(double least, double most, int count = 8);

}  // namespace hccl_perf
