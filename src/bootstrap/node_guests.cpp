// SPDX-License-Identifier: Apache-2.0
// Other users are turned away at once; the kernel tells who they are.
#include "bootstrap/node_guests.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/peer_process.h"
#include "base/text.h"
#include "bootstrap/messages.h"

#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

namespace hccl::bootstrap {
namespace {

constexpr std::size_t kMostStrangers = 64;
// Connections accepted in one turn: guests that are in are served between turns, however many
// connections wait.
constexpr int kMostGuestsAtOnce = 64;
constexpr std::size_t kMostPayload = kMostBlob + 64;
constexpr std::size_t kDescriptorsOfAGuest = 2;

}  // namespace

NodeGuests::NodeGuests(const FileDescriptor& listener, std::size_t ranks, Deadline::Duration limit)
    : listener_(listener), most_guests_(ranks + kMostStrangers), limit_(limit) {}

std::vector<pollfd> NodeGuests::wanted() const {
  std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
  for (const Guest& guest : guests_) {
    entries.push_back({guest.channel.fd(), guest.channel.events(), 0});
  }
  return entries;
}

Deadline::Duration NodeGuests::patience() const {
  constexpr Deadline::Duration kLong = std::chrono::hours(24);
  return guests_.empty() ? kLong : guests_.front().deadline.remaining(kLong);
}

void NodeGuests::serve(const std::function<bool(FrameChannel&, Frame&)>& take) {
  std::erase_if(guests_, [&](Guest& guest) { return is_done(guest, take); });
  accept_some();
}

// Data that has arrived counts even if it is late: it may be this process that was stopped.
bool NodeGuests::is_done(Guest& guest, const std::function<bool(FrameChannel&, Frame&)>& take) {
  const int socket = guest.channel.fd();
  if (std::optional<Frame> frame = guest.channel.receive()) {
    if (!take(guest.channel, *frame)) reject(socket, "sent what no rank of this communicator says");
    return true;
  }
  if (guest.channel.closed()) {
    if (guest.channel.broke_rules()) reject(socket, guest.channel.why());
    return true;
  }
  if (!guest.deadline.expired()) return false;
  reject(socket, "contributed nothing in time");
  return true;
}

void NodeGuests::accept_some() {
  bool some = false;
  for (int count = 0; count < kMostGuestsAtOnce; ++count) {
    FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EAGAIN) return;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (guests_.empty()) {
        throw Error(hcclSystemError,
                    text("cannot accept a rank's connection: ", system_error_text(errno), "; ",
                         advice_on(errno, "start all ranks again")));
      }
      // Ranks among the new ones have their say before anybody is dropped.
      if (some) return;
      drop_oldest();
      continue;
    }
    some = true;
    if (peer_user(socket.get()) != geteuid()) {
      reject(socket.get(), "belongs to another user");
      continue;
    }
    if (guests_.size() >= most_guests_) drop_oldest();
    guests_.push_back({FrameChannel(std::move(socket), kMostPayload, kDescriptorsOfAGuest),
                       Deadline::after(limit_)});
  }
}

// Ranks contribute at once, so the one that has been silent longest is a stranger.
void NodeGuests::drop_oldest() {
  reject(guests_.front().channel.fd(), "was silent while too many others wait");
  guests_.erase(guests_.begin());
}

void NodeGuests::reject(int socket, const std::string& why) {
  rejections_.report(
      [&] {
        const auto other = peer_credentials(socket);
        return other ? text("pid ", other->pid, " of user ", other->uid) : "a process that is gone";
      },
      why);
}

}  // namespace hccl::bootstrap
