// SPDX-License-Identifier: Apache-2.0
// Accepts, hears the handshakes and seats those who pass. Strangers cost a bounded number of
// descriptors for a bounded time.
#include "transport/listener.h"

#include "base/errno_advice.h"
#include "base/log.h"
#include "base/retry.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::transport {
namespace {

constexpr int kMostAcceptsAtOnce = 16;
constexpr std::chrono::milliseconds kNoDescriptorsPause{100};

bool is_lack_of_room(int error) {
  return error == EMFILE || error == ENFILE || is_memory_shortage(error);
}

// Returns whether the other end has closed it, with nothing left to read.
bool has_ended(const FileDescriptor& socket) {
  std::byte byte{};
  const ssize_t count = recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

bool say(const FileDescriptor& socket, const Bytes& bytes) {
  const ssize_t sent = retried(
      [&] { return send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); });
  return sent == static_cast<ssize_t>(bytes.size());
}

}  // namespace

Listener::Listener(std::vector<FileDescriptor> sockets, const Membership& own, const Limits& limits,
                   const Family& family)
    : sockets_(std::move(sockets)),
      own_(own),
      limits_(limits),
      family_(family),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      strangers_(family.name) {
  if (!epoll_.valid()) {
    throw Error(hcclSystemError,
                text("cannot watch the listening socket: ", system_error_text(errno), "; ",
                     advice_on(errno, "raise ulimit -n")));
  }
  for (const FileDescriptor& socket : sockets_) watch(socket.get());
}

Listener::~Listener() = default;

void Listener::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST) {
    throw Error(hcclSystemError,
                text("cannot watch the listening socket: ", system_error_text(errno), "; ",
                     advice_on(errno, "raise fs.epoll.max_user_watches")));
  }
}

// Closing is not enough: a forked child may have the socket, too.
void Listener::unwatch(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Listener::serve() {
  if (rests_ && resting_.expired()) wake_up();
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    const auto next = std::next(guest);
    if (guest->deadline.expired()) {
      dismiss(guest, "had not proved itself in time");
    } else if (listen_to(*guest)) {
      remove(guest);
    }
    guest = next;
  }
  if (rests_) return;
  for (const FileDescriptor& socket : sockets_) accept_from(socket);
}

void Listener::accept_from(const FileDescriptor& socket) {
  for (int count = 0; count < kMostAcceptsAtOnce; ++count) {
    FileDescriptor guest(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (guest.valid()) {
      welcome(std::move(guest));
    } else if (is_lack_of_room(errno)) {
      if (guests_.empty()) return rest();
      dismiss(guests_.begin(), "was the oldest when descriptors ran out");
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void Listener::welcome(FileDescriptor socket) {
  std::string who = family_.describe(socket.get());
  const std::string objection =
      family_.object == nullptr ? std::string() : family_.object(socket.get());
  if (!objection.empty()) return reject(who, objection);
  if (guests_.size() >= limits_.pending) {
    dismiss(guests_.begin(), "had not proved itself when others came");
  }
  guests_.push_back({std::move(socket), std::move(who), AcceptorHandshake(own_),
                     Deadline::after(limits_.handshake)});
  // Read data that has already arrived: most connections need no further wake-up then.
  if (listen_to(guests_.back())) {
    remove(std::prev(guests_.end()));
  } else {
    watch(guests_.back().socket.get());
  }
}

// Reads and answers; true if the guest is one no more.
bool Listener::listen_to(Guest& guest) {
  std::array<std::byte, 256> buffer{};
  while (guest.handshake.state() == Handshake::State::talking) {
    const std::size_t most = std::min(buffer.size(), guest.handshake.wanted());
    const ssize_t count = recv(guest.socket.get(), buffer.data(), most, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return false;
    if (count <= 0) {
      reject(guest.who, "closed before it had proved itself");
      return true;
    }
    const Bytes answer =
        guest.handshake.take(std::span(buffer).first(static_cast<std::size_t>(count)));
    if (!answer.empty() && !say(guest.socket, answer)) {
      reject(guest.who, "does not take an answer");
      return true;
    }
  }
  if (guest.handshake.state() == Handshake::State::done) {
    seat(guest);
  } else {
    reject(guest.who, guest.handshake.why());
  }
  return true;
}

void Listener::seat(Guest& guest) {
  const StreamKey& key = guest.handshake.key();
  Seat& seat = seats_[key];
  const bool waits_in_vain = seat.socket.valid() && has_ended(seat.socket);
  if (seat.taken || (seat.socket.valid() && !waits_in_vain)) {
    static_cast<void>(say(guest.socket, AcceptorHandshake::say(Verdict::claimed)));
    const std::string first = seat.socket.valid() ? family_.describe(seat.socket.get())
                                                  : std::string("the first connection");
    return reject(guest.who, text("claimed to be rank ", key.from, " for a stream that ", first,
                                  " has already"));
  }
  if (!say(guest.socket, AcceptorHandshake::say(Verdict::accepted))) {
    return reject(guest.who, "does not take an answer");
  }
  unwatch(guest.socket.get());
  seat.socket = std::move(guest.socket);
  const std::uint64_t one = 1;
  if (seat.bell >= 0) static_cast<void>(!write(seat.bell, &one, sizeof(one)));
}

void Listener::reject(const std::string& who, const std::string& why) {
  strangers_.report([&] { return who; }, why);
}

void Listener::dismiss(Guests::iterator guest, const std::string& why) {
  reject(guest->who, why);
  remove(guest);
}

void Listener::remove(Guests::iterator guest) {
  if (guest->socket.valid()) unwatch(guest->socket.get());
  guests_.erase(guest);
}

// Nothing here can be closed, so that only other parts of the program can make room; meanwhile a
// connection that waits to be accepted must not wake anybody.
void Listener::rest() {
  if (!rests_) {
    log(LogLevel::error, family_.name, "cannot accept connections for want of descriptors or ",
        "memory; raise ulimit -n");
  }
  rests_ = true;
  resting_ = Deadline::after(kNoDescriptorsPause);
  for (const FileDescriptor& socket : sockets_) {
    unwatch(socket.get());
  }
}

void Listener::wake_up() {
  rests_ = false;
  for (const FileDescriptor& socket : sockets_) watch(socket.get());
}

Claim::Claim(std::shared_ptr<Listener> listener, const StreamKey& key)
    : listener_(std::move(listener)), key_(key), bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_.valid()) {
    throw Error(hcclSystemError, text("cannot make an eventfd: ", system_error_text(errno), "; ",
                                      advice_on(errno, "raise ulimit -n")));
  }
  const std::lock_guard lock(listener_->mutex_);
  Listener::Seat& seat = listener_->seats_[key_];
  if (seat.taken || seat.bell >= 0) {
    throw Error(hcclInternalError, text("the stream from rank ", key_.from, " to rank ", key_.to,
                                        " is opened twice; report this as a defect of hccl"));
  }
  seat.bell = bell_.get();
}

// Nobody waits for the connection, or uses the one that has been taken, any more.
Claim::~Claim() {
  const std::lock_guard lock(listener_->mutex_);
  const auto found = listener_->seats_.find(key_);
  if (found->second.socket.valid()) {
    found->second.bell = -1;
  } else {
    listener_->seats_.erase(found);
  }
}

std::optional<FileDescriptor> Claim::poll() {
  const std::lock_guard lock(listener_->mutex_);
  listener_->serve();
  Listener::Seat& seat = listener_->seats_[key_];
  if (!seat.socket.valid()) return std::nullopt;
  seat.taken = true;
  seat.bell = -1;
  bell_.reset();
  return std::move(seat.socket);
}

void Claim::plan_sleep(SleepPlan& plan) {
  const std::lock_guard lock(listener_->mutex_);
  plan.descriptors.push_back({bell_.get(), POLLIN, 0});
  plan.descriptors.push_back({listener_->epoll_.get(), POLLIN, 0});
  for (const Listener::Guest& guest : listener_->guests_) {
    plan.at_most = std::min(plan.at_most, guest.deadline.remaining());
  }
  if (listener_->rests_) plan.at_most = std::min(plan.at_most, listener_->resting_.remaining());
}

}  // namespace hccl::transport
