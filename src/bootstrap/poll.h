// SPDX-License-Identifier: Apache-2.0
// poll(2) with a Deadline.
#pragma once

#include "base/deadline.h"

#include <vector>

#include <poll.h>

namespace hccl::bootstrap {

// The number of entries with events; 0 once the deadline has passed. Entries with a negative
// descriptor are ignored. An interrupting signal starts the wait anew.
int poll_until(std::vector<pollfd>& entries, Deadline deadline);

}  // namespace hccl::bootstrap
