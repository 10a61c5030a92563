// SPDX-License-Identifier: Apache-2.0
// Reads WORLD_SIZE, NODE_RANK, MASTER_ADDR and MASTER_PORT.
#include "node_share.h"

#include "errors.h"

#include <cstring>

namespace ddp_trainer {
namespace {

using hccl_perf::Environment;
using hccl_perf::number_of;
using hccl_perf::value_of;

constexpr int kMostPorts = 65535;

}  // namespace

NodeShare node_share(const Options& options, const Environment& environment) {
  const int here = options.processes;
  const char* const size = value_of(environment, "WORLD_SIZE");
  const char* const node = value_of(environment, "NODE_RANK");
  if (size == nullptr || node == nullptr) return {0, here, here};
  if (!options.processes_given) {
    throw UsageError(
        "WORLD_SIZE and NODE_RANK are set, but neither RANK nor -g; give -g N for the N ranks of "
        "this node");
  }
  const int ranks = number_of("WORLD_SIZE", size, 1, hccl_perf::kMostRanks);
  const int node_rank = number_of("NODE_RANK", node, 0, ranks - 1);
  if (ranks % here != 0 || node_rank >= ranks / here) {
    throw UsageError(text("WORLD_SIZE=", ranks, " does not fit -g ", here, " and NODE_RANK=",
                          node_rank, "; set WORLD_SIZE to -g times the number of nodes"));
  }
  return {node_rank * here, here, ranks};
}

std::string master_address(const Environment& environment) {
  const char* const host = value_of(environment, "MASTER_ADDR");
  const char* const port = value_of(environment, "MASTER_PORT");
  if (host == nullptr || port == nullptr) return "";
  static_cast<void>(number_of("MASTER_PORT", port, 1, kMostPorts));
  const bool is_v6 = std::strchr(host, ':') != nullptr;
  return is_v6 ? text('[', host, "]:", port) : text(host, ':', port);
}

}  // namespace ddp_trainer
