// SPDX-License-Identifier: Apache-2.0
#include "comm/plan_text.h"

#include "base/text.h"
#include "schedule/printer.h"

namespace hccl::comm {
namespace {

using planner::Request;

std::string head(const Request& request, int ranks, std::string_view algorithm,
                 const std::string& transport, bool json) {
  if (json) {
    return text("{\"collective\":\"", name_of(request.collective), "\",\"bytes\":", request.bytes,
                ",\"rank\":", request.rank, ",\"ranks\":", ranks, ",\"root\":", request.root,
                ",\"algorithm\":\"", algorithm, "\",\"transport\":\"", transport,
                "\",\"channels\":[");
  }
  const std::string root =
      traits(request.collective).has_root() ? text(", root ", request.root) : "";
  return text(name_of(request.collective), " of ", request.bytes, " bytes", root, ", rank ",
              request.rank, " of ", ranks, ": ", algorithm, " over ", transport, '\n');
}

}  // namespace

std::string plan_text(const planner::Planner& planner, const Request& request,
                      const std::string& transport, bool json) {
  const planner::Plan plan = planner.plan(request);
  std::string written =
      head(request, planner.topology().ranks(), plan.algorithm->name, transport, json);
  schedule::Shape shape = plan.shape;
  for (; shape.channel < shape.channels; ++shape.channel) {
    const schedule::Schedule steps = planner.in_program_numbers(plan, planner.build(plan, shape));
    schedule::Shape shown = shape;
    shown.rank = request.rank;
    shown.root = traits(request.collective).has_root() ? request.root : 0;
    if (json && shape.channel > 0) written += ',';
    written += json ? schedule::json_of(shown, steps) : schedule::text_of(shown, steps);
  }
  return json ? written + "]}\n" : written;
}

std::string node_plan_text(const Request& request, int ranks, bool json) {
  const std::string written = head(request, ranks, ranks > 1 ? "node" : "copy", "memory", json);
  if (ranks == 1) return json ? written + "]}\n" : written;
  return json ? written + "]}\n"
              : written +
                    "all ranks work together in the memory of the node; HCCL_ALGO or "
                    "HCCL_TRANSPORT forces schedules\n";
}

}  // namespace hccl::comm
