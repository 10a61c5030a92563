// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include "text.h"

#include <hccl_emulation.h>

// This function's address is null with the library for real devices, which lacks the function.
#pragma weak hcclEmulationPlan

namespace hccl_perf {
namespace {

const char* library_name(const Collective& collective) {
  return collective.kind == CollectiveKind::all_to_all ? "all_to_all" : collective.name;
}

std::uint64_t block_bytes(const Collective& collective, const RowCase& row, int ranks) {
  const std::uint64_t bytes = collective.counts(row.bytes, row.type, ranks).call * row.type.size;
  return collective.kind == CollectiveKind::all_to_all ? bytes / static_cast<std::uint64_t>(ranks)
                                                       : bytes;
}

}  // namespace

std::string plans(const Options& options, const Session& session) {
  auto* const ask = &hcclEmulationPlan;
  if (ask == nullptr)
    throw RunError("--plan: the loaded library cannot report plans; load hccl's libSynapse.so");
  std::string all;
  for (const RowCase& row : options.cases(session.ranks())) {
    hcclEmulationPlanRequest_t request{};
    request.collective = library_name(*options.collective);
    request.bytes = block_bytes(*options.collective, row, session.ranks());
    request.root = row.root;
    request.json = options.plan_json ? 1 : 0;
    std::uint64_t length = 0;
    std::string plan;
    for (int pass = 0; pass < 2; ++pass) {
      plan.resize(length + (pass == 0 ? 0 : 1));
      const hcclResult_t result =
          ask(session.communicator(), &request, plan.data(), plan.size(), &length);
      if (result != hcclSuccess)
        throw RunError(text("--plan: hcclEmulationPlan: ", hcclGetLastErrorMessage()));
    }
    plan.resize(length);
    all += plan;
  }
  return all;
}

}  // namespace hccl_perf
