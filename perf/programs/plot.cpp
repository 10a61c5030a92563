// SPDX-License-Identifier: Apache-2.0
// Drawing a plot. Coordinates are CSS pixels from the upper left corner.
#include "plot.h"

#include "quantities.h"
#include "text.h"

#include <algorithm>
#include <cmath>

namespace hccl_perf {
namespace {

constexpr double kWidth = 1080;
constexpr double kMargin = 28;
constexpr double kPanelTop = 112;
constexpr std::size_t kFewColumns = 2;  // of panels; those of more columns are small
constexpr double kTickLabels = 58;      // room left of a panel
constexpr double kGap = 30;             // between panels
constexpr double kLegendLine = 22;
constexpr double kLegendSample = 34;
constexpr double kLetter = 7.2;           // about, at 13 px
constexpr std::size_t kManyLines = 24;    // are drawn thinner
constexpr std::size_t kMostMarkers = 64;  // on a line

constexpr const char* kInk = "#1f2933";
constexpr const char* kSoftInk = "#52606d";
constexpr const char* kGrid = "#e4e7eb";
constexpr const char* kFrame = "#9aa5b1";
constexpr const char* kContext = "#d3d8de";

// Layout that follows from the number of columns.
struct PanelLayout {
  double height;  // of a panel's axes
  double pitch;   // from row to row
  int size_ticks;
  bool titled_x;
};
constexpr PanelLayout kLarge{330, 410, 8, true};
constexpr PanelLayout kSmall{140, 206, 3, false};

const PanelLayout& layout_of(const Plot& plot) {
  return plot.columns > kFewColumns ? kSmall : kLarge;
}

std::size_t rows_of(const Plot& plot) {
  return std::max<std::size_t>(1, (plot.panels.size() + plot.columns - 1) / plot.columns);
}

std::string px(double value) { return decimal(value, 1); }

std::string escaped(const std::string& written) {
  std::string safe;
  for (const char letter : written) {
    switch (letter) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;  // XML has no others
    }
  }
  return safe;
}

struct Lettering {
  double size = 12;
  const char* anchor = "start";
  const char* colour = kSoftInk;
  bool bold = false;
};

std::string words(double x, double y, const Lettering& look, const std::string& written) {
  return text("<text x=\"", px(x), "\" y=\"", px(y), "\" font-size=\"", px(look.size),
              "\" text-anchor=\"", look.anchor, "\" fill=\"", look.colour, "\"",
              look.bold ? " font-weight=\"600\"" : "", ">", escaped(written), "</text>\n");
}

std::string straight(double x1, double y1, double x2, double y2, const char* colour) {
  return text("<line x1=\"", px(x1), "\" y1=\"", px(y1), "\" x2=\"", px(x2), "\" y2=\"", px(y2),
              "\" stroke=\"", colour, "\"/>\n");
}

std::string marker(double x, double y, const LineStyle& style, double weight) {
  const std::string paint =
      text(" fill=\"", style.dashed ? "#ffffff" : style.colour, "\" stroke=\"", style.colour,
           "\" stroke-width=\"", px(1.6 * weight), "\"/>\n");
  const double r = 3.4 * weight;
  switch (style.marker % kMarkers) {
    case 1:
      return text("<rect x=\"", px(x - r), "\" y=\"", px(y - r), "\" width=\"", px(2 * r),
                  "\" height=\"", px(2 * r), "\"", paint);
    case 2:
      return text("<path d=\"M", px(x), " ", px(y - 1.3 * r), "L", px(x + 1.2 * r), " ", px(y + r),
                  "L", px(x - 1.2 * r), " ", px(y + r), "Z\"", paint);
    case 3:
      return text("<path d=\"M", px(x), " ", px(y - 1.4 * r), "L", px(x + 1.4 * r), " ", px(y), "L",
                  px(x), " ", px(y + 1.4 * r), "L", px(x - 1.4 * r), " ", px(y), "Z\"", paint);
    default:
      return text("<circle cx=\"", px(x), "\" cy=\"", px(y), "\" r=\"", px(r), "\"", paint);
  }
}

std::string stroke(const LineStyle& style, double weight) {
  return text(" fill=\"none\" stroke=\"", style.colour, "\" stroke-width=\"", px(2 * weight), "\"",
              style.dashed ? " stroke-dasharray=\"6 4\"" : "", "/>\n");
}

// From values to pixels.
struct Scale {
  double first, last;  // of the values
  double from, to;     // of the pixels
  bool logarithmic;

  [[nodiscard]] double operator()(double value) const {
    const double part = logarithmic ? std::log(value / first) / std::log(last / first)
                                    : (value - first) / (last - first);
    return from + part * (to - from);
  }
};

struct Box {
  double left, top, right, bottom;

  [[nodiscard]] double middle() const { return (left + right) / 2; }
};

class PanelDrawing {
 public:
  PanelDrawing(const Plot& plot, const PlotPanel& panel, const Box& box)
      : plot_(plot),
        panel_(panel),
        layout_(layout_of(plot)),
        box_(box),
        weight_(panel.lines.size() > kManyLines || !layout_.titled_x ? 0.65 : 1) {}

  [[nodiscard]] std::string draw() const {
    const double title_at = layout_.titled_x ? box_.left : box_.left - kTickLabels + 8;
    std::string svg = words(title_at, box_.top - 14, {13, "start", kInk, true}, panel_.title);
    std::vector<double> xs;
    std::vector<double> ys;
    for (const auto* lines : {&panel_.lines, &panel_.context}) {
      for (const PlotLine& line : *lines) {
        for (const PlotPoint& point : line.points) {
          if (!drawable(point)) continue;
          xs.push_back(point.x);
          ys.push_back(point.y);
        }
      }
    }
    if (xs.empty()) {
      const double centre = (box_.top + box_.bottom) / 2;
      return svg + frame() + words(box_.middle(), centre, {13, "middle"}, "no data");
    }
    const auto [x_least, x_most] = std::minmax_element(xs.begin(), xs.end());
    const auto [y_least, y_most] = std::minmax_element(ys.begin(), ys.end());
    const Ticks x = plot_.counted_x ? linear_ticks(*x_most, 1)
                                    : binary_ticks(*x_least, *x_most, layout_.size_ticks);
    const Ticks y = panel_.logarithmic ? decade_ticks(*y_least, *y_most) : linear_ticks(*y_most);
    constexpr double kInset = 12;  // keeps markers off the frame
    const Scale across{x.first, x.last, box_.left + kInset, box_.right - kInset, !plot_.counted_x};
    const Scale up{y.first, y.last, box_.bottom, box_.top + kInset, panel_.logarithmic};
    svg += grid(x, y, across, up) + frame();
    if (layout_.titled_x)
      svg += words(box_.middle(), box_.bottom + 42, {12, "middle"}, plot_.x_title);
    for (const PlotLine& line : panel_.context)
      svg += curve({context_style(), line.points}, across, up, false);
    for (const PlotLine& line : panel_.lines)
      svg += curve(line, across, up, line.points.size() <= kMostMarkers);
    return svg;
  }

 private:
  [[nodiscard]] bool drawable(const PlotPoint& point) const {
    return point.x > 0 && (point.y > 0 || !panel_.logarithmic);
  }

  [[nodiscard]] std::string frame() const {
    return straight(box_.left, box_.top, box_.left, box_.bottom, kFrame) +
           straight(box_.left, box_.bottom, box_.right, box_.bottom, kFrame);
  }

  [[nodiscard]] std::string grid(const Ticks& x, const Ticks& y, const Scale& across,
                                 const Scale& up) const {
    std::string svg;
    for (const double at : x.at) {
      svg += straight(across(at), box_.top, across(at), box_.bottom, kGrid);
      svg += words(across(at), box_.bottom + 20, {12, "middle"}, plot_.x_label(at));
    }
    for (const double at : y.at) {
      svg += straight(box_.left, up(at), box_.right, up(at), kGrid);
      svg += words(box_.left - 8, up(at) + 4, {12, "end"}, panel_.y_label(at, y.step));
    }
    return svg;
  }

  [[nodiscard]] std::string curve(const PlotLine& line, const Scale& across, const Scale& up,
                                  bool marked) const {
    std::string path;
    std::string markers;
    for (const PlotPoint& point : line.points) {
      if (!drawable(point)) continue;
      const double x = across(point.x);
      const double y = up(point.y);
      path += text(path.empty() ? "" : " ", px(x), ",", px(y));
      if (marked) markers += marker(x, y, line.style, weight_);
    }
    return text("<polyline points=\"", path, "\" stroke-linejoin=\"round\"",
                stroke(line.style, weight_), markers);
  }

  const Plot& plot_;
  const PlotPanel& panel_;
  const PanelLayout& layout_;
  Box box_;
  double weight_;  // of lines and markers
};

// In columns as wide as the longest label.
class Legend {
 public:
  explicit Legend(const Plot& plot) : plot_(plot) {
    std::size_t letters = 0;
    for (const auto& group : plot.legend) {
      for (const LegendEntry& entry : group) letters = std::max(letters, entry.label.size());
    }
    width_ = kLegendSample + 36 + static_cast<double>(letters) * kLetter;
    const double room = kWidth - 2 * kMargin - kTickLabels;
    columns_ = static_cast<std::size_t>(std::max(1.0, std::floor(room / width_)));
  }

  [[nodiscard]] double bottom() const {
    std::size_t lines = 0;
    for (const auto& group : plot_.legend) lines += lines_of(group);
    return top() + static_cast<double>(lines) * kLegendLine;
  }

  [[nodiscard]] std::string draw() const {
    std::string svg;
    std::size_t line = 0;
    for (const auto& group : plot_.legend) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        const std::size_t row = line + i / columns_;
        svg += entry(group[i], kMargin + kTickLabels + static_cast<double>(i % columns_) * width_,
                     top() + static_cast<double>(row) * kLegendLine);
      }
      line += lines_of(group);
    }
    return svg;
  }

 private:
  [[nodiscard]] double top() const {
    const PanelLayout& layout = layout_of(plot_);
    return kPanelTop + static_cast<double>(rows_of(plot_)) * layout.pitch -
           (layout.titled_x ? 6 : 10);
  }

  [[nodiscard]] std::size_t lines_of(const std::vector<LegendEntry>& group) const {
    return (group.size() + columns_ - 1) / columns_;
  }

  [[nodiscard]] static std::string entry(const LegendEntry& entry, double x, double y) {
    return text("<path d=\"M", px(x), " ", px(y), "H", px(x + kLegendSample), "\"",
                stroke(entry.style, 1), marker(x + kLegendSample / 2, y, entry.style, 1),
                words(x + kLegendSample + 8, y + 4.5, {13, "start", kInk}, entry.label));
  }

  const Plot& plot_;
  double width_ = 0;
  std::size_t columns_ = 1;
};

// Row by row; all panels are equally wide.
std::string draw_panels(const Plot& plot) {
  const PanelLayout& layout = layout_of(plot);
  const auto columns =
      static_cast<double>(std::max<std::size_t>(1, std::min(plot.columns, plot.panels.size())));
  const double width = (kWidth - 2 * kMargin - (columns - 1) * kGap) / columns;
  std::string svg;
  for (std::size_t i = 0; i < plot.panels.size(); ++i) {
    const std::size_t row = i / plot.columns;
    const double left = kMargin + static_cast<double>(i % plot.columns) * (width + kGap);
    const double top = kPanelTop + static_cast<double>(row) * layout.pitch;
    const Box box{left + kTickLabels, top, left + width, top + layout.height};
    svg += PanelDrawing(plot, plot.panels[i], box).draw();
  }
  return svg;
}

}  // namespace

LineStyle context_style() { return {kContext, false, 0}; }

std::string svg_text(const Plot& plot) {
  const Legend legend(plot);
  const double height = legend.bottom() + 6;
  std::string svg = text(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
      "width=\"",
      px(kWidth), "\" height=\"", px(height), "\" viewBox=\"0 0 ", px(kWidth), " ", px(height),
      "\" font-family=\"system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', Arial, sans-serif\">\n",
      "<title>", escaped(plot.title), "</title>\n<rect width=\"100%\" height=\"100%\" ",
      "fill=\"#ffffff\"/>\n");
  svg += words(kMargin, 42, {21, "start", kInk, true}, plot.title);
  svg += words(kMargin, 66, {13}, plot.subtitle);
  return svg + draw_panels(plot) + legend.draw() + "</svg>\n";
}

}  // namespace hccl_perf
