// SPDX-License-Identifier: Apache-2.0
// The picture of a run, and where its ticks go.
#include "plot.h"

#include "plot_report.h"
#include "sample_results.h"

#include <cmath>

namespace hccl_perf {
namespace {

std::size_t occurrences(const std::string& all, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = all.find(part); at != std::string::npos; at = all.find(part, at + 1))
    ++found;
  return found;
}

void expect_shows(const std::string& svg, const std::string& words) {
  EXPECT_NE(svg.find(">" + words + "</text>"), std::string::npos) << words << " is not in " << svg;
}

// Elements are closed, in order: enough of XML for what we write.
void expect_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    if (svg[at + 1] == '?' || svg[end - 1] == '/') continue;
    const std::string name = svg.substr(at + 1, svg.find_first_of(" >", at) - at - 1);
    if (name[0] != '/') {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty());
    EXPECT_EQ("/" + open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

std::vector<Row> sweep(const char* collective, int root = -1) {
  std::vector<Row> rows;
  for (std::uint64_t bytes = 1024; bytes <= 1 << 20; bytes *= 4)
    rows.push_back(sample_row(collective, bytes, {static_cast<double>(bytes) + 500}, root));
  return rows;
}

TEST(PlotReport, ShowsBandwidthAndTimeOfBothPlacements) {
  const Options options = sample_options("all_reduce");
  const std::string svg = plot_text(sample_results(options, sweep("all_reduce")));
  expect_well_formed(svg);
  EXPECT_EQ(occurrences(svg, "<polyline "), 4U);
  EXPECT_EQ(occurrences(svg, "<circle "), 4U * 6 + 2) << "points, and two in the legend";
  expect_shows(svg, "all_reduce, 4 ranks");
  expect_shows(svg,
               "bfloat16, max  \u00b7  somewhere, 16 cores (Some CPU)  \u00b7  2026-02-02 02:40 "
               "UTC  \u00b7  hccl-perf " HCCL_PERF_VERSION);
  for (const char* words : {"Bus bandwidth (GB/s)", "Time per call", "out of place", "in place",
                            "1 KiB", "1 MiB", "1 \u00b5s", "1 ms"}) {
    expect_shows(svg, words);
  }
}

TEST(PlotReport, NamesWhatDiffersBetweenLines) {
  const Options options = sample_options("broadcast");
  std::vector<Row> rows = sweep("broadcast", 0);
  const std::vector<Row> others = sweep("broadcast", 1);
  rows.insert(rows.end(), others.begin(), others.end());
  const std::string svg = plot_text(sample_results(options, rows));
  EXPECT_EQ(occurrences(svg, "<polyline "), 8U);
  for (const char* words : {"root 0", "root 1", "out of place", "in place"})
    expect_shows(svg, words);
}

// A sweep for each of `types` and `reductions`.
std::vector<Row> sweeps(const std::vector<hcclDataType_t>& types,
                        const std::vector<hcclRedOp_t>& reductions) {
  std::vector<Row> rows;
  for (const hcclDataType_t type : types) {
    for (const hcclRedOp_t reduction : reductions) {
      for (Row row : sweep("all_reduce")) {
        row.type = kDataTypes.at(type);
        row.reduction = kReductions.at(reduction);
        rows.push_back(row);
      }
    }
  }
  return rows;
}

// How many lines of that colour are drawn thin, as in small panels.
std::size_t thin_lines(const std::string& svg, const char* colour) {
  return occurrences(svg, text("stroke=\"", colour, "\" stroke-width=\"1.3\""));
}

TEST(PlotReport, GivesEachOfManyTypesPanelsOfItsOwn) {
  const Options options = sample_options("all_reduce");
  const std::vector<hcclDataType_t> types{hcclInt8, hcclUint8, hcclInt32, hcclUint32, hcclFloat32};
  const std::string svg = plot_text(sample_results(options, sweeps(types, {hcclSum})));
  expect_well_formed(svg);
  EXPECT_EQ(occurrences(svg, "<polyline "), 2U * 5 * 2 * 5) << "each panel shows all lines";
  EXPECT_EQ(thin_lines(svg, "#0072b2"), 2U * 5) << "and one placement of its own type in blue";
  EXPECT_EQ(thin_lines(svg, "#d3d8de"), 2U * 5 * 2 * 4) << "and the others' in grey";
  for (const char* words :
       {"int8: bus GB/s", "float: time per call", "out of place", "in place", "other panels"})
    expect_shows(svg, words);
}

TEST(PlotReport, ColoursReductionsWithinThePanelsOfAType) {
  const Options options = sample_options("all_reduce");
  const std::vector<hcclDataType_t> types{hcclInt8, hcclUint8, hcclInt32};
  const std::string svg = plot_text(sample_results(options, sweeps(types, {hcclSum, hcclMax})));
  EXPECT_EQ(thin_lines(svg, "#0072b2"), 2U * 3 * 2) << "sum, out of place and in place";
  EXPECT_EQ(thin_lines(svg, "#d55e00"), 2U * 3 * 2) << "max";
  for (const char* words : {"int8: bus GB/s", "sum", "max", "out of place", "other panels"})
    expect_shows(svg, words);
}

TEST(PlotReport, KeepsFewTypesTogether) {
  const Options options = sample_options("all_reduce");
  const std::string svg =
      plot_text(sample_results(options, sweeps({hcclInt8, hcclInt32}, {hcclSum})));
  EXPECT_EQ(occurrences(svg, "<polyline "), 2U * 2 * 2);
  expect_shows(svg, "Bus bandwidth (GB/s)");
  EXPECT_EQ(svg.find("other panels"), std::string::npos);
}

TEST(PlotReport, HasDecadesOfBandwidth) {
  const Options options = sample_options("all_reduce");
  const std::string svg =
      plot_text(sample_results(options, {sample_row("all_reduce", 4096, {1e7}),     // 0.0006 GB/s
                                         sample_row("all_reduce", 8192, {1e3})}));  // 12 GB/s
  for (const char* words : {"0.001", "0.01", "0.1", "1", "10"}) expect_shows(svg, words);
}

TEST(PlotReport, LeavesOutInPlaceWhereThereIsNone) {
  const Options options = sample_options("sendrecv");
  std::vector<Row> rows = sweep("sendrecv");
  for (Row& row : rows) row.in_place.reset();
  const std::string svg = plot_text(sample_results(options, rows));
  EXPECT_EQ(occurrences(svg, "<polyline "), 2U);
  EXPECT_EQ(svg.find(">in place<"), std::string::npos);
}

TEST(PlotReport, DrawsTheMedianOfRepeatedRows) {
  const Options options = sample_options("all_reduce");
  const Row slow = sample_row("all_reduce", 4096, {9000});
  const Row middle = sample_row("all_reduce", 4096, {5000});
  const Row fast = sample_row("all_reduce", 4096, {1000});
  EXPECT_EQ(plot_text(sample_results(options, {slow, fast, middle})),
            plot_text(sample_results(options, {middle})));
  EXPECT_NE(plot_text(sample_results(options, {slow})),
            plot_text(sample_results(options, {middle})));
}

TEST(PlotReport, HasWordsWhereThereIsNothingToDraw) {
  const Options options = sample_options("all_gather");
  const std::string svg = plot_text(sample_results(options, {sample_row("all_gather", 8, {900})}));
  expect_well_formed(svg);
  EXPECT_EQ(occurrences(svg, ">no data<"), 2U) << "a size of 0 has no place on the axis";
}

TEST(PlotReport, EscapesText) {
  const Options options = sample_options("all_reduce");
  Results results = sample_results(options, sweep("all_reduce"));
  results.host.cpu = "A & B <\"fast\">\n\x01";
  const std::string svg = plot_text(results);
  expect_well_formed(svg);
  EXPECT_NE(svg.find("(A &amp; B &lt;&quot;fast&quot;&gt;  )"), std::string::npos);
}

TEST(PlotReport, IsTheSameInEveryLocale) {
  const Options options = sample_options("all_reduce");
  const Results results = sample_results(options, sweep("all_reduce"));
  const std::string before = plot_text(results);
  const CommaLocale commas;
  EXPECT_EQ(plot_text(results), before);
}

TEST(Ticks, AreRoundOnALinearAxis) {
  const Ticks ticks = linear_ticks(22.3);
  EXPECT_EQ(ticks.at, (std::vector<double>{0, 5, 10, 15, 20, 25}));
  EXPECT_EQ(ticks.last, 25);
  EXPECT_EQ(linear_ticks(20).last, 20);
  EXPECT_EQ(linear_ticks(2, 1).at, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(linear_ticks(0).last, 1) << "an axis is never empty";
  EXPECT_NEAR(linear_ticks(0.013).step, 0.005, 1e-12);
}

TEST(Ticks, AreDecadesOnALogarithmicAxis) {
  const auto rounded = [](const Ticks& ticks) {
    std::vector<long> at;
    for (const double each : ticks.at) at.push_back(std::lround(each));
    return at;
  };
  EXPECT_EQ(rounded(decade_ticks(2.5, 90)), (std::vector<long>{2, 5, 10, 20, 50, 100}));
  EXPECT_EQ(rounded(decade_ticks(3, 700'000)),
            (std::vector<long>{10, 100, 1000, 10'000, 100'000, 1'000'000}));
  const Ticks alone = decade_ticks(1000, 1000);
  EXPECT_LT(alone.first, 1000);
  EXPECT_GT(alone.last, 1000);
  EXPECT_GE(alone.at.size(), 3U);
}

TEST(Ticks, ArePowersOfTwoOnASizeAxis) {
  EXPECT_EQ(binary_ticks(1024, 8192).at, (std::vector<double>{1024, 2048, 4096, 8192}));
  EXPECT_EQ(binary_ticks(8, 64ULL << 20).at.size(), 8U);
  EXPECT_EQ(binary_ticks(10'007, 10'007).at, (std::vector<double>{8192, 16384}));
}

}  // namespace
}  // namespace hccl_perf
