// SPDX-License-Identifier: Apache-2.0
// A pid alone identifies a process only within one pid namespace of one node.
#include "bootstrap/process_identity.h"

#include "base/peer_process.h"
#include "base/process.h"
#include "base/rank_text.h"

#include <unistd.h>

namespace hccl::bootstrap {

ProcessIdentity ProcessIdentity::mine() {
  return {getpid(), own_pid_namespace(), host_name(), node_identity()};
}

bool ProcessIdentity::shares_pids_with(const ProcessIdentity& other) const {
  return node == other.node && pid_namespace == other.pid_namespace && pid_namespace != 0;
}

bool ProcessIdentity::same_process(const ProcessIdentity& other) const {
  return pid == other.pid && shares_pids_with(other);
}

std::string rank_text(int rank, const ProcessIdentity& process) {
  return hccl::rank_text(rank, process.pid, process.host);
}

}  // namespace hccl::bootstrap
