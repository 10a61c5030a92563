// SPDX-License-Identifier: Apache-2.0
// The table, and reading what is forced.
#include "planner/planner.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

namespace hccl::planner {
namespace {

using algorithms::Algorithm;
using schedule::Collective;

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kPipelinePiece = 128 << 10;
constexpr std::uint64_t kMostPipeline = 64;

// The first row that fits counts.
struct Row {
  Collective collective;
  std::uint64_t most_bytes;
  std::string_view algorithm;
};

// Small messages go by few hops, large ones by as little data as can be. Where latency and data
// weigh the same, docs/explanation/schedules.md tells.
constexpr Row kTable[] = {
    {Collective::all_reduce, 32 << 10, "halving_doubling"},
    {Collective::all_reduce, kAny, "ring"},
    {Collective::reduce_scatter, 16 << 10, "halving_doubling"},
    {Collective::reduce_scatter, kAny, "ring"},
    {Collective::all_gather, 16 << 10, "halving_doubling"},
    {Collective::all_gather, kAny, "ring"},
    {Collective::broadcast, 64 << 10, "tree"},
    {Collective::broadcast, kAny, "chain"},
    {Collective::reduce, 64 << 10, "tree"},
    {Collective::reduce, kAny, "chain"},
    {Collective::all_to_all, kAny, "pairwise"},
    {Collective::barrier, kAny, "dissemination"},
    {Collective::point_to_point, kAny, "point_to_point"},
};

std::string_view chosen(Collective collective, std::uint64_t bytes) {
  for (const Row& row : kTable) {
    if (row.collective == collective && bytes <= row.most_bytes) return row.algorithm;
  }
  return {};
}

}  // namespace

Plan make_plan(Collective collective, std::uint64_t bytes, int ranks, const std::string& forced) {
  Plan plan;
  plan.algorithm = algorithms::find(forced, collective);
  if (plan.algorithm == nullptr)
    plan.algorithm = algorithms::find(chosen(collective, bytes), collective);
  if (plan.algorithm->name != "tree") return plan;
  // One tree for each half of the data.
  plan.channels = ranks > 2 && bytes > kPipelinePiece ? 2 : 1;
  plan.pipeline = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(bytes / plan.channels / kPipelinePiece, 1, kMostPipeline));
  return plan;
}

void check_algorithm(const std::string& name) {
  if (name.empty()) return;
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms::catalogue()) {
    const bool general = algorithm.collective != Collective::point_to_point &&
                         algorithm.collective != Collective::barrier;
    if (general && std::ranges::find(names, algorithm.name) == names.end())
      names.push_back(algorithm.name);
  }
  if (std::ranges::find(names, name) != names.end()) return;
  std::string list;
  for (const std::string_view one : names) list += text(list.empty() ? "" : ", ", one);
  throw Error(hcclInvalidArgument,
              text("HCCL_ALGO='", name, "' is no algorithm; set it to one of ", list));
}

}  // namespace hccl::planner
