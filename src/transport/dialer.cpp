// SPDX-License-Identifier: Apache-2.0
// Makes connection attempts one after the other, each with a time limit.
#include "transport/dialer.h"

#include "base/errno_advice.h"
#include "base/retry.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

namespace hccl::transport {
namespace {

constexpr std::chrono::milliseconds kShortestPause{5};
constexpr std::chrono::milliseconds kLongestPause{500};
// Time limit for each attempt in the first round through the targets. The limit doubles after each
// round, because the rank may be slow.
constexpr std::chrono::seconds kFirstAttemptLimit{5};
constexpr int kMaxRefusalsPerTarget = 5;

Deadline at_once() { return Deadline::after(std::chrono::nanoseconds(1)); }

}  // namespace

Dialer::Dialer(std::vector<DialTarget> targets, const Membership& own, const StreamKey& key,
               const ConnectionLimits& limits, TuneSocket tune, LeastProtection least_protection)
    : targets_(std::move(targets)),
      own_(own),
      key_(key),
      limits_(limits),
      tune_(tune),
      least_protection_(std::move(least_protection)),
      deadline_(Deadline::after(limits.connect)),
      attempt_(at_once()),
      attempt_limit_(kFirstAttemptLimit),
      pause_(kShortestPause),
      failures_(targets_.size(), "has not been tried") {}

std::optional<Connected> Dialer::poll() {
  if (!given_up_.empty()) throw PeerLost(key_.to, given_up_);
  if (state_ == State::pausing) {
    if (!attempt_.expired()) return std::nullopt;
    start_attempt();
  }
  if (state_ == State::connecting && is_connected()) {
    state_ = State::handshaking;
    handshake_.emplace(own_, key_,
                       least_protection_ ? least_protection_(socket_.get()) : Protection::off);
    if (!send_now(handshake_->hello())) fail_attempt(system_error_text(errno), false);
  }
  if (state_ == State::handshaking) continue_handshake();
  if (state_ != State::handshaking || handshake_->state() != Handshake::State::done)
    return std::nullopt;
  ProtectedStream stream = handshake_->stream();  // if this throws, the next call tries again
  handshake_.reset();
  state_ = State::connected;
  return Connected{std::move(socket_), std::move(stream)};
}

// Never blocks: the messages of a handshake fit in the send buffer of a new connection.
bool Dialer::send_now(const Bytes& bytes) const noexcept {
  const ssize_t sent =
      retried([&] { return send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); });
  return sent == static_cast<ssize_t>(bytes.size());
}

void Dialer::start_attempt() {
  socket_ = FileDescriptor(
      socket(target().address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.valid()) {
    throw Error(hcclSystemError, text("cannot create a socket: ", system_error_text(errno), "; ",
                                      advice_on(errno, "check HCCL_SOCKET_IFNAME")));
  }
  if (tune_ != nullptr) tune_(socket_.get(), limits_);
  attempt_ = Deadline::after(attempt_limit_);
  state_ = State::connecting;
  const DialTarget& to = target();
  while (connect(socket_.get(), to.address.get(), to.address.length) != 0 && errno != EINPROGRESS) {
    if (errno == EINTR) continue;
    // A unix socket returns EAGAIN if the listener's backlog is full.
    return fail_attempt(system_error_text(errno), errno == ECONNREFUSED);
  }
}

bool Dialer::is_connected() {
  pollfd entry{socket_.get(), POLLOUT, 0};
  if (::poll(&entry, 1, 0) != 1) {
    if (attempt_.expired()) fail_attempt("does not answer", false);
    return false;
  }
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) fail_attempt(system_error_text(error), error == ECONNREFUSED);
  return error == 0;
}

void Dialer::continue_handshake() {
  std::array<std::byte, 256> buffer{};
  while (handshake_->state() == Handshake::State::in_progress) {
    const std::size_t most = std::min(buffer.size(), handshake_->wanted());
    const ssize_t count = recv(socket_.get(), buffer.data(), most, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      // The connection was accepted, so the rank is only late: restart the time limit. If the rank
      // has other addresses, one of them may answer sooner.
      deadline_ = Deadline::after(limits_.connect);
      if (targets_.size() > 1 && attempt_.expired()) fail_attempt("sends nothing", false);
      return;
    }
    if (count <= 0) {
      return fail_attempt(count == 0 ? std::string("closed the connection without an answer")
                                     : system_error_text(errno),
                          false);
    }
    const Bytes answer = handshake_->take(std::span(buffer).first(static_cast<std::size_t>(count)));
    if (!answer.empty() && !send_now(answer)) return fail_attempt(system_error_text(errno), false);
  }
  if (handshake_->state() == Handshake::State::refused) fail_attempt(handshake_->why(), true);
}

void Dialer::fail_attempt(const std::string& why, bool refused) {
  socket_.reset();
  state_ = State::pausing;
  failures_[at_] = why;
  refusals_ = refused ? refusals_ + 1 : 0;
  give_up_if_due();
  if (++at_ < targets_.size()) {
    attempt_ = at_once();
    return;
  }
  at_ = 0;
  attempt_ = Deadline::after(pause_);
  pause_ = std::min<Deadline::Duration>(2 * pause_, kLongestPause);
  attempt_limit_ *= 2;
}

void Dialer::give_up_if_due() {
  const bool refuses = refusals_ >= kMaxRefusalsPerTarget * static_cast<int>(targets_.size());
  if (!refuses && !deadline_.expired()) return;
  std::string tried;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    tried += text(i == 0 ? "" : ", ", targets_[i].name, " (", failures_[i], ')');
  }
  given_up_ = text("rank ", key_.from, " cannot reach rank ", key_.to, " at ", tried,
                   "; see the output of rank ", key_.to);
  throw PeerLost(key_.to, given_up_);
}

void Dialer::plan_sleep(SleepPlan& plan) {
  if (state_ == State::connecting) plan.descriptors.push_back({socket_.get(), POLLOUT, 0});
  if (state_ == State::handshaking) plan.descriptors.push_back({socket_.get(), POLLIN, 0});
  if (state_ != State::handshaking || targets_.size() > 1) {
    plan.at_most = std::min(plan.at_most, attempt_.remaining());
  }
}

}  // namespace hccl::transport
