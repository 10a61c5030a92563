// SPDX-License-Identifier: Apache-2.0
// Accepts connections, runs their handshakes and keeps those that authenticate. Unauthenticated
// connections hold a limited number of descriptors for a limited time.
#include "transport/listener.h"

#include "base/choose_victim.h"
#include "base/errno_advice.h"
#include "base/log.h"
#include "base/retry.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::transport {
namespace {

constexpr int kMaxAcceptsAtOnce = 16;
constexpr std::chrono::milliseconds kNoDescriptorsPause{100};

// Returns whether the connection has failed, or the other end has closed it and nothing is left to
// read.
bool has_ended(const FileDescriptor& socket) {
  std::byte byte{};
  const ssize_t count = recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

bool send_now(const FileDescriptor& socket, const Bytes& bytes) {
  const ssize_t sent = retried(
      [&] { return send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); });
  return sent == static_cast<ssize_t>(bytes.size());
}

}  // namespace

Listener::Listener(std::vector<FileDescriptor> sockets, Membership own,
                   const ConnectionLimits& limits, const SocketFamily& family)
    : sockets_(std::move(sockets)),
      own_(std::move(own)),
      limits_(limits),
      family_(family),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      rejections_(family.name) {
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
    throw Error(hcclSystemError, text("cannot watch a socket: ", system_error_text(errno), "; ",
                                      advice_on(errno, "raise fs.epoll.max_user_watches")));
  }
}

// Removes the socket from the epoll set. Closing the socket is not enough, because a forked child
// may hold a duplicate.
void Listener::unwatch(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Listener::serve() {
  if (paused_ && paused_until_.expired()) resume_accepting();
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    const auto next = std::next(pending);
    if (pending->deadline.expired()) {
      dismiss(pending, "did not authenticate in time");
    } else if (progress(*pending)) {
      remove(pending);
    }
    pending = next;
  }
  if (paused_) return;
  for (const FileDescriptor& socket : sockets_) accept_from(socket);
}

void Listener::accept_from(const FileDescriptor& socket) {
  for (int count = 0; count < kMaxAcceptsAtOnce; ++count) {
    SocketAddress from;
    FileDescriptor pending(
        accept4(socket.get(), from.get(), &from.length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (pending.valid()) {
      admit(std::move(pending), from);
    } else if (is_resource_shortage(errno)) {
      if (pending_.empty()) return pause_accepting();
      dismiss(victim(), "had not authenticated when descriptors or memory ran out");
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void Listener::admit(FileDescriptor socket, const SocketAddress& from) {
  std::string who = family_.describe(socket.get(), from);
  const std::string objection =
      family_.objection == nullptr ? std::string() : family_.objection(socket.get());
  if (!objection.empty()) return reject(who, objection);
  if (pending_.size() >= limits_.pending) {
    dismiss(victim(), "had not authenticated when newer connections arrived");
  }
  const Protection protection =
      family_.least_protection ? family_.least_protection(socket.get()) : Protection::off;
  pending_.push_back({std::move(socket), std::move(who), from_socket_address(from.get()),
                      AcceptorHandshake(own_, protection), Deadline::after(limits_.handshake)});
  // Reads the connector's hello if it has already arrived, which saves a wake-up.
  if (progress(pending_.back())) {
    remove(std::prev(pending_.end()));
  } else {
    watch(pending_.back().socket.get());
  }
}

// Reads the messages that have arrived, and answers them. Returns true if the connection is no
// longer pending.
bool Listener::progress(PendingConnection& pending) {
  std::array<std::byte, 256> buffer{};
  while (pending.handshake.state() == Handshake::State::in_progress) {
    const std::size_t most = std::min(buffer.size(), pending.handshake.wanted());
    const ssize_t count = recv(pending.socket.get(), buffer.data(), most, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return false;
    if (count <= 0) {
      reject(pending.who, "closed the connection before it had authenticated");
      return true;
    }
    const Bytes answer =
        pending.handshake.take(std::span(buffer).first(static_cast<std::size_t>(count)));
    if (!answer.empty() && !send_now(pending.socket, answer)) {
      reject(pending.who, "could not be answered");
      return true;
    }
  }
  if (pending.handshake.state() == Handshake::State::done) {
    hand_over(pending);
  } else {
    reject(pending.who, pending.handshake.why());
  }
  return true;
}

void Listener::hand_over(PendingConnection& pending) {
  const StreamKey& key = pending.handshake.key();
  Inbound& inbound = inbound_[key];
  const bool waits_in_vain = inbound.socket.valid() && has_ended(inbound.socket);
  if (inbound.taken || (inbound.socket.valid() && !waits_in_vain)) {
    static_cast<void>(send_now(pending.socket, pending.handshake.answer(Verdict::claimed)));
    return reject(pending.who, text("claimed to be rank ", key.from, " for a stream that ",
                                    inbound.who, " already has"));
  }
  // If this throws, the connector has not been accepted yet.
  ProtectedStream stream = pending.handshake.stream();
  if (!send_now(pending.socket, pending.handshake.answer(Verdict::accepted))) {
    return reject(pending.who, "could not be answered");
  }
  unwatch(pending.socket.get());
  inbound.socket = std::move(pending.socket);
  inbound.stream = std::move(stream);
  inbound.who = pending.who;
  const std::uint64_t one = 1;
  if (inbound.bell >= 0) static_cast<void>(!write(inbound.bell, &one, sizeof(one)));
}

Listener::PendingList::iterator Listener::victim() {
  return choose_victim(
      pending_, [](const PendingConnection& one) { return one.handshake.has_heard(); },
      [](const PendingConnection& one) { return one.from; });
}

void Listener::reject(const std::string& who, const std::string& why) {
  rejections_.report([&] { return who; }, why);
}

void Listener::dismiss(PendingList::iterator pending, const std::string& why) {
  reject(pending->who, why);
  remove(pending);
}

void Listener::remove(PendingList::iterator pending) {
  if (pending->socket.valid()) unwatch(pending->socket.get());
  pending_.erase(pending);
}

// Stops accepting for kNoDescriptorsPause. No pending connection is left to close, so only other
// parts of the program can release descriptors. Removes the listening sockets from the epoll set,
// so that connections waiting to be accepted do not wake a thread during the pause.
void Listener::pause_accepting() {
  if (!paused_) {
    log(LogLevel::error, family_.name, "cannot accept connections for lack of descriptors or ",
        "memory; raise ulimit -n");
  }
  paused_ = true;
  paused_until_ = Deadline::after(kNoDescriptorsPause);
  for (const FileDescriptor& socket : sockets_) {
    unwatch(socket.get());
  }
}

void Listener::resume_accepting() {
  paused_ = false;
  for (const FileDescriptor& socket : sockets_) watch(socket.get());
}

InboundConnection::InboundConnection(std::shared_ptr<Listener> listener, const StreamKey& key)
    : listener_(std::move(listener)), key_(key), bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_.valid()) {
    throw Error(hcclSystemError, text("cannot create an eventfd: ", system_error_text(errno), "; ",
                                      advice_on(errno, "raise ulimit -n")));
  }
  const std::lock_guard lock(listener_->mutex_);
  Listener::Inbound& inbound = listener_->inbound_[key_];
  if (inbound.taken || inbound.bell >= 0) {
    throw Error(hcclInternalError, text("the stream from rank ", key_.from, " to rank ", key_.to,
                                        " is opened twice; report this as a bug in hccl"));
  }
  inbound.bell = bell_.get();
}

// A connection that has arrived but was not taken stays in the listener, for the next object that
// waits for its stream.
InboundConnection::~InboundConnection() {
  const std::lock_guard lock(listener_->mutex_);
  const auto found = listener_->inbound_.find(key_);
  if (found->second.socket.valid()) {
    found->second.bell = -1;
  } else {
    listener_->inbound_.erase(found);
  }
}

std::optional<Connected> InboundConnection::poll() {
  const std::lock_guard lock(listener_->mutex_);
  listener_->serve();
  Listener::Inbound& inbound = listener_->inbound_[key_];
  if (!inbound.socket.valid()) return std::nullopt;
  inbound.taken = true;
  inbound.bell = -1;
  bell_.reset();
  return Connected{std::move(inbound.socket), std::move(inbound.stream)};
}

void InboundConnection::plan_sleep(SleepPlan& plan) {
  const std::lock_guard lock(listener_->mutex_);
  plan.descriptors.push_back({bell_.get(), POLLIN, 0});
  plan.descriptors.push_back({listener_->epoll_.get(), POLLIN, 0});
  for (const Listener::PendingConnection& pending : listener_->pending_) {
    plan.at_most = std::min(plan.at_most, pending.deadline.remaining());
  }
  if (listener_->paused_)
    plan.at_most = std::min(plan.at_most, listener_->paused_until_.remaining());
}

}  // namespace hccl::transport
