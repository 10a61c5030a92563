// SPDX-License-Identifier: Apache-2.0
// Finds what a job may leave behind on the machine: names in /dev/shm and abstract unix sockets.
#pragma once

#include <set>
#include <string>

namespace hccl::test {

// Moves this process, and the ranks that it starts, into a network namespace with only a loopback
// interface, so that the sockets of other jobs are not counted. Does nothing without permission.
void isolate_network();

// Returns all names that exist now.
[[nodiscard]] std::set<std::string> shared_names();

// Returns the names that exist now but not in `before`. Waits up to ten seconds for them to
// disappear.
[[nodiscard]] std::string leftovers(const std::set<std::string>& before);

}  // namespace hccl::test
