// SPDX-License-Identifier: Apache-2.0
// Times are rounded up, for a wait that ends just before its deadline would be repeated with zero
// again and again.
#include "bootstrap/poll.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <cerrno>

namespace hccl::bootstrap {

int poll_until(std::vector<pollfd>& entries, Deadline deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
    const int count = poll(entries.data(), entries.size(), static_cast<int>(left.count()));
    if (count > 0) return count;
    if (count < 0 && errno != EINTR) {
      throw Error(hcclSystemError, text("cannot wait for ", entries.size(),
                                        " connections (poll): ", system_error_text(errno), "; ",
                                        advice_on(errno, "raise ulimit -n")));
    }
    if (deadline.expired()) return 0;
  }
}

}  // namespace hccl::bootstrap
