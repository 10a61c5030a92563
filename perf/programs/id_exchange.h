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

// Each process calls its exchange exactly once. The process of rank 0 passes the id, and the other
// processes pass nothing. The exchange returns the id, or throws RunError.
using IdExchange = std::function<hcclUniqueId(const std::optional<hcclUniqueId>& mine)>;

// Returns an exchange between the children of one parent. `others` is the number of processes other
// than process 0. `pipe` must outlive the exchange.
[[nodiscard]] IdExchange exchange_by_pipe(Pipe& pipe, int others);

// Returns an exchange between the processes of a launched job. If HCCL_COMM_ID is set, the library
// uses the address in that variable, so nothing is sent and the other processes get an empty id.
// Otherwise, if the job has several processes, the exchange uses PMIx if possible, or else an
// abstract unix socket, for which all processes must be on one node.
[[nodiscard]] IdExchange exchange_between_launched(const LaunchEnvironment& launch,
                                                   const Environment& environment);

// Returns an exchange over an abstract unix socket, which is named after the job. The exchange
// blocks for at most about `seconds`.
[[nodiscard]] IdExchange exchange_by_socket(const LaunchEnvironment& launch, double seconds);

// Convert the id to text and back. id_from_text() throws RunError if the text is not an id.
[[nodiscard]] std::string id_to_text(const hcclUniqueId& id);
[[nodiscard]] hcclUniqueId id_from_text(const std::string& written);

}  // namespace hccl_perf
