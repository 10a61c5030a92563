// SPDX-License-Identifier: Apache-2.0
// Passes the unique id from rank 0 to the other processes of a run: over a pipe between siblings,
// through PMIx, or over a socket on one node.
#pragma once

#include "launch_environment.h"
#include "pipe.h"

#include <hccl_types.h>

#include <functional>
#include <optional>
#include <string>

namespace hccl_perf {

// Each process calls it exactly once. The process of rank 0 passes its id, which is sent to the
// other processes; the others pass nothing. Returns the id of rank 0. Throws RunError.
using IdExchange = std::function<hcclUniqueId(const std::optional<hcclUniqueId>& mine)>;

// Returns an exchange between the children of one parent. Process 0 writes the id once for each of
// the `others`.
[[nodiscard]] IdExchange exchange_by_pipe(Pipe& pipe, int others);

// Returns an exchange between processes of a launcher. If HCCL_COMM_ID is set, nothing is sent,
// because the library uses that address. Otherwise the exchange uses PMIx if possible or, on one
// node, an abstract socket named after the job.
[[nodiscard]] IdExchange exchange_between_launched(const LaunchEnvironment& launch,
                                                   const Environment& environment);

// Returns an exchange over the socket. It waits for the other processes for at most `seconds`.
[[nodiscard]] IdExchange exchange_by_socket(const LaunchEnvironment& launch, double seconds);

// Convert the id to text and back. id_from_text() throws RunError for a text that is damaged.
[[nodiscard]] std::string id_to_text(const hcclUniqueId& id);
[[nodiscard]] hcclUniqueId id_from_text(const std::string& written);

}  // namespace hccl_perf
