// SPDX-License-Identifier: Apache-2.0
// How the processes of a run get the unique id that rank 0 made: a pipe between siblings, PMIx, or
// a socket on one node.
#pragma once

#include "launch_environment.h"
#include "pipe.h"

#include <hccl_types.h>

#include <functional>
#include <optional>
#include <string>

namespace hccl_perf {

// Called once per process. The process of rank 0 passes the id it made and hands it out; the others
// pass nothing and get it. Throws RunError.
using IdExchange = std::function<hcclUniqueId(const std::optional<hcclUniqueId>& mine)>;

// Between the children of one parent: process 0 writes the id once for each of the `others`.
[[nodiscard]] IdExchange exchange_by_pipe(Pipe& pipe, int others);

// Between launched processes: nothing is sent if HCCL_COMM_ID is set (the library uses that
// address), else PMIx, else, on one node, an abstract socket named after the job.
[[nodiscard]] IdExchange exchange_between_launched(const LaunchEnvironment& launch,
                                                   const Environment& environment);

// The socket alone. `seconds`: how long to wait for the others.
[[nodiscard]] IdExchange exchange_by_socket(const LaunchEnvironment& launch, double seconds);

// The id as text and back. `from_text` throws RunError.
[[nodiscard]] std::string id_to_text(const hcclUniqueId& id);
[[nodiscard]] hcclUniqueId id_from_text(const std::string& written);

}  // namespace hccl_perf
