// SPDX-License-Identifier: Apache-2.0
#include "comm/plan_text.h"

#include "base/text.h"

namespace hccl::comm {

std::string plan_text(const PlanRequest& request, const PlanSteps& plan, int rank, int ranks) {
  if (request.as_json) {
    return text("{\"collective\":\"", name_of(request.collective), "\",\"bytes\":", request.bytes,
                ",\"rank\":", rank, ",\"ranks\":", ranks, ",\"root\":", request.root,
                ",\"algorithm\":\"", plan.algorithm, "\",\"transport\":\"", plan.transport,
                "\",\"channels\":[", plan.steps, "]}\n");
  }
  const std::string root =
      traits(request.collective).has_root() ? text(", root ", request.root) : "";
  return text(name_of(request.collective), " of ", request.bytes, " bytes", root, ", rank ", rank,
              " of ", ranks, ": ", plan.algorithm, " over ", plan.transport, '\n', plan.steps);
}

}  // namespace hccl::comm
