// SPDX-License-Identifier: Apache-2.0
// Connects the ranks of a communicator: a rendezvous over TCP at the address in the unique id, then
// an exchange of descriptors between the ranks of each node over abstract unix sockets.
#pragma once

#include "base/deadline.h"
#include "base/file_descriptor.h"
#include "bootstrap/rank_table.h"

#include <hccl_types.h>

#include <functional>

namespace hccl::bootstrap {

// Creates the memory segment that the `ranks` ranks of a node share. Called on the lowest rank of
// each node, unless the communicator has only one rank.
using MakeControl = std::function<FileDescriptor(int ranks)>;

// Joins the communicator of `size` ranks that `id` names. Blocks until all ranks have joined and
// exchanged their data. Throws Error if the deadline passes (the text names the missing ranks, if
// the server answers), or if this or another rank cannot join for any other reason: for example, a
// process exits, two processes claim the same rank, or the ranks pass different sizes.
[[nodiscard]] RankTable join(const hcclUniqueId& id, int size, int rank, Contribution mine,
                             const MakeControl& make_control, Deadline deadline);

}  // namespace hccl::bootstrap
