// SPDX-License-Identifier: Apache-2.0
// Finds what a job may leave behind on the machine: files in /dev/shm and abstract unix sockets.
#pragma once

#include <set>
#include <string>

namespace hccl::test {

// Moves this process, and the ranks that it starts later, into a network namespace with only a
// loopback interface, so that shared_names() does not include the sockets of other jobs. Does
// nothing if the process may not create namespaces.
void isolate_network();

// Returns the names of all files in /dev/shm and of all abstract unix sockets.
[[nodiscard]] std::set<std::string> shared_names();

// Blocks for up to ten seconds, until no name outside `before` exists. Returns the names outside
// `before` that still exist.
[[nodiscard]] std::string leftovers(const std::set<std::string>& before);

}  // namespace hccl::test
