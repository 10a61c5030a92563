// SPDX-License-Identifier: Apache-2.0
// The data that a rank contributes when it joins a communicator, and the data that it receives
// about all ranks.
#pragma once

#include "base/fields.h"
#include "base/file_descriptor.h"
#include "base/secret_bytes.h"
#include "bootstrap/control_link.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hccl::bootstrap {

struct RankTable;

struct CommunicatorSecret {
  std::shared_ptr<const SecretBytes> bytes;
  bool is_private = false;  // false if the ranks have met without a shared secret
};

inline constexpr int kMostRanks = 4096;  // of a communicator
inline constexpr std::size_t kMostAnnounced = 1024;

struct Contribution {
  // For the other ranks of this node: opaque data, and the descriptor of the device memory.
  Bytes blob;
  FileDescriptor memory;
  // Returns the bytes to announce to the ranks of all nodes, at most kMostAnnounced. The argument
  // is the communicator's secret. Called once if there are several nodes, or if announces_always is
  // set and there are several ranks; otherwise never.
  std::function<Bytes(const CommunicatorSecret&)> announce;
  bool announces_always = false;
  // Called with the contributions of this node's ranks, before this rank reports that it is ready;
  // not called if the communicator has only one rank. May throw Error to reject the contributions;
  // initialisation then fails on all ranks.
  std::function<void(const RankTable&)> inspect;
};

// The information about one rank after the exchange.
struct RankInfo {
  int rank = -1;
  int pid = 0;               // in its own pid namespace
  bool shares_pids = false;  // whether this process is in the same pid namespace
  std::string host;
  std::string node;  // identifies the node: equal for all its ranks
  Bytes announced;
  // `blob`, `memory` and `process` are empty for ranks on other nodes.
  Bytes blob;
  FileDescriptor memory;
  FileDescriptor process;  // pidfd; invalid for ranks of this process
};

struct RankTable {
  std::vector<RankInfo> members;  // by rank
  FileDescriptor control;         // the segment that the ranks of this node share
  LinkSocket link;
};

}  // namespace hccl::bootstrap
