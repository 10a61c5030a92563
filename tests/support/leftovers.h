// SPDX-License-Identifier: Apache-2.0
// Finds what a job could leave behind on the machine: names in /dev/shm and abstract unix sockets.
#pragma once

#include <set>
#include <string>

namespace hccl::test {

// Moves this process, and the ranks it starts, into a network of its own with just a loopback
// interface, so that other jobs' sockets are not counted. Does nothing where that is not allowed.
void isolate_network();

// Returns every name that exists now.
[[nodiscard]] std::set<std::string> shared_names();

// Names that are there now and were not in `before`; waits up to ten seconds for them to go.
[[nodiscard]] std::string leftovers(const std::set<std::string>& before);

}  // namespace hccl::test
