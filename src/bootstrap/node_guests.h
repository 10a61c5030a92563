// SPDX-License-Identifier: Apache-2.0
// The connections to a leader's node socket that have not contributed yet. Ranks are among them,
// and whoever else of this machine found the socket.
#pragma once

#include "base/deadline.h"
#include "base/rejection_log.h"
#include "bootstrap/frame_channel.h"

#include <cstddef>
#include <functional>
#include <vector>

#include <poll.h>

namespace hccl::bootstrap {

// One thread. Nothing here blocks.
class NodeGuests {
 public:
  // `listener` outlives this. Each guest has `limit` to say its frame.
  NodeGuests(const FileDescriptor& listener, std::size_t ranks, Deadline::Duration limit);

  // Returns the descriptors to poll.
  [[nodiscard]] std::vector<pollfd> wanted() const;
  [[nodiscard]] Deadline::Duration patience() const;

  // `take` gets the first frame of each guest that has said one; it may move from the channel, and
  // returns false for a stranger's. Then others are let in, and those that have closed, broken the
  // rules or let their time pass are dropped. Throws Error(hcclSystemError) if there is no
  // descriptor for another guest and none of a guest's to take it from.
  void serve(const std::function<bool(FrameChannel&, Frame&)>& take);

 private:
  struct Guest {
    FrameChannel channel;
    Deadline deadline;
  };

  [[nodiscard]] bool is_done(Guest& guest, const std::function<bool(FrameChannel&, Frame&)>& take);
  void accept_some();
  void drop_oldest();
  void reject(int socket, const std::string& why);

  const FileDescriptor& listener_;
  std::size_t most_guests_;
  Deadline::Duration limit_;
  std::vector<Guest> guests_;  // in order of arrival
  RejectionLog rejections_{"bootstrap"};
};

}  // namespace hccl::bootstrap
