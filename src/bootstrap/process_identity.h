// SPDX-License-Identifier: Apache-2.0
// Identifies a process to other processes.
#pragma once

#include <cstdint>
#include <string>

namespace hccl::bootstrap {

struct ProcessIdentity {
  int pid = 0;  // in its own pid namespace
  std::uint64_t pid_namespace = 0;
  std::string host;
  std::string node;  // node_identity() of the process

  [[nodiscard]] static ProcessIdentity mine();
  // Returns true if both processes are in one pid namespace, and thus can use each other's pid.
  [[nodiscard]] bool shares_pids_with(const ProcessIdentity& other) const;
  [[nodiscard]] bool same_process(const ProcessIdentity& other) const;

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// Returns a description of a rank: "rank 3 (pid 4242, host a)".
[[nodiscard]] std::string rank_text(int rank, const ProcessIdentity& process);

}  // namespace hccl::bootstrap
