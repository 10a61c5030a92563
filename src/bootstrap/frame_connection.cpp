// SPDX-License-Identifier: Apache-2.0
// The loop reports that the socket is ready; sendmsg and recvmsg then move the bytes, because Asio
// cannot pass descriptors. Descriptors travel with the first byte of their frame, so all of them
// have arrived by the time the frame is complete.
#include "bootstrap/frame_connection.h"

#include "base/interfaces.h"
#include "base/passed_descriptors.h"
#include "base/peer_process.h"
#include "base/retry.h"
#include "base/text.h"
#include "crypto/tls_session.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace hccl::bootstrap {
namespace {

constexpr std::chrono::seconds kFlushPatience{1};
constexpr std::size_t kMostReadAtOnce = std::size_t{64} << 10;
constexpr std::size_t kKernelMost = 253;  // descriptors in one message (SCM_MAX_FD)

}  // namespace

FrameConnection::FrameConnection(EventLoop& loop, Detached connection, const Limits& limits)
    : loop_(loop),
      socket_(std::move(connection.socket)),
      limits_(limits),
      ends_(connection.ends),
      wait_(loop),
      tls_(std::move(connection.tls)),
      received_(std::move(connection.received)),
      has_heard_(!received_.empty() || !connection.encrypted.empty()) {
  if (socket_.valid() && wait_.watch(socket_.get()) != 0) {
    end("has a socket that epoll cannot watch");
  } else if (tls_) {
    decrypt(connection.encrypted);
  }
}

FrameConnection::~FrameConnection() { close(); }

std::optional<Frame> FrameConnection::receive() {
  std::optional<Frame> frame = take_frame();
  if (frame || ended_ || reading_ || !socket_.valid()) return frame;
  wait_.when_readable([this] { on_readable(); });
  reading_ = true;  // not reached if when_readable() throws
  return frame;
}

void FrameConnection::on_readable() {
  const auto self = shared_from_this();
  reading_ = false;
  if (owner_ == nullptr) return read_some();
  try {
    read_some();
    owner_->on_activity(*this);
  } catch (const std::bad_alloc&) {
    received_ = Bytes();
    end("sent data for which the receiving host has no memory left; free memory on that host");
    if (owner_ != nullptr) owner_->on_activity(*this);
  }
}

void FrameConnection::read_some() {
  if (!tls_) {
    static_cast<void>(read_socket(received_));
    return;
  }
  Bytes encrypted;
  if (read_socket(encrypted) > 0) decrypt(encrypted);
}

// Appends what the socket has received to `destination`. Returns the number of bytes, or 0 if there
// are none or the connection has ended.
std::ptrdiff_t FrameConnection::read_socket(Bytes& destination) {
  const std::size_t before = destination.size();
  const std::size_t most = std::min(kMostReadAtOnce, kFrameHeaderSize + limits_.payload);
  destination.resize(before + most);
  DescriptorBuffer<kKernelMost> control;
  iovec part{destination.data() + before, most};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (limits_.descriptors > 0) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
  }
  const ssize_t count =
      retried([&] { return recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC); });
  const int error = errno;
  destination.resize(before + (count > 0 ? static_cast<std::size_t>(count) : 0));
  if (count <= 0) {
    if (count == 0 || error == ECONNRESET) {
      end(received_.empty() ? "closed the connection"
                            : "closed the connection in the middle of a frame");
    } else if (error != EAGAIN) {
      end(text("cannot be reached: ", system_error_text(error)));
    }
    return 0;
  }
  has_heard_ = true;
  if (limits_.descriptors == 0) return count;
  if (!take_descriptors(message, received_descriptors_)) {
    end("sent more descriptors than this process may open (raise ulimit -n)");
  } else if (received_descriptors_.size() > limits_.descriptors) {
    break_rules("sent too many descriptors");
  }
  return count;
}

// Decrypts the bytes, and sends what the TLS session answers, such as its part of the handshake.
void FrameConnection::decrypt(std::span<const std::byte> encrypted) {
  using crypto::TlsState;
  tls_->receive(encrypted, received_);
  queue(tls_->take_output(), {});
  switch (tls_->state()) {
    case TlsState::handshake:
    case TlsState::established:
      return;
    case TlsState::closed:
      return end("closed the connection");
    case TlsState::not_tls:
      return break_rules(kNotTls);
    case TlsState::other_key:
      return break_rules("does not know the secret");
    case TlsState::failed:
      return break_rules(text("broke the TLS protocol: ", tls_->why()));
    case TlsState::altered:
      // Keeps the frames that have arrived before, which may contain the cause.
      broke_rules_ = true;
      return end("sent a TLS record that does not authenticate");
  }
}

bool FrameConnection::is_established() const {
  return !tls_ || tls_->state() == crypto::TlsState::established;
}

std::string FrameConnection::peer_text() const {
  return is_local() ? hccl::peer_text(fd()) : ends_.peer.to_text();
}

std::string FrameConnection::ends_text() const {
  return is_local() ? "unix socket" : connection_text(ends_.own, ends_.peer);
}

bool FrameConnection::lacks_key() const {
  return tls_ && tls_->state() == crypto::TlsState::other_key;
}

bool FrameConnection::forged() const { return tls_ && tls_->state() == crypto::TlsState::altered; }

std::optional<Frame> FrameConnection::take_frame() {
  if (received_.size() < kFrameHeaderSize) return std::nullopt;
  const std::span<const std::byte> bytes(received_);
  const auto header = parse_header(bytes.first<kFrameHeaderSize>(), limits_.payload);
  if (!header || (limits_.descriptors == 0 && header->descriptors != 0)) {
    break_rules("sent bytes that are not an hccl frame");
    return std::nullopt;
  }
  const std::size_t size = kFrameHeaderSize + header->length;
  if (received_.size() < size) return std::nullopt;
  if (received_descriptors_.size() < header->descriptors) {
    break_rules("sent a frame without its descriptors");
    return std::nullopt;
  }
  Frame frame;
  frame.type = header->type;
  const auto payload = bytes.subspan(kFrameHeaderSize, header->length);
  frame.payload.assign(payload.begin(), payload.end());
  for (std::size_t i = 0; i < header->descriptors; ++i) {
    frame.descriptors.push_back(std::move(received_descriptors_.front()));
    received_descriptors_.pop_front();
  }
  erase_front(received_, size);
  return frame;
}

void FrameConnection::break_rules(const std::string& why) {
  received_ = Bytes();
  received_descriptors_.clear();
  broke_rules_ = true;
  end(why);
}

void FrameConnection::end(const std::string& why) {
  if (std::exchange(ended_, true)) return;
  why_ = why;
}

void FrameConnection::send(FrameType type, std::span<const std::byte> payload,
                           const std::vector<int>& descriptors) {
  Bytes frame = encode_frame(type, payload, descriptors.size());
  if (tls_) {
    tls_->send(frame);
    frame = tls_->take_output();
  }
  queue(std::move(frame), descriptors);
}

// Immediately sends as many bytes as the socket accepts: once other ranks have received the same
// frame, they may end the whole job, and the bytes still in the queue would be lost.
void FrameConnection::queue(Bytes bytes, const std::vector<int>& descriptors) {
  if (bytes.empty() || !socket_.valid() || self_) return;
  unsent_bytes_ += bytes.size();
  unsent_.push_back({std::move(bytes), 0, descriptors});
  if (unsent_bytes_ > limits_.unsent) {
    end("has stopped reading its connection");
    unsent_.clear();
    shutdown(socket_.get(), SHUT_RDWR);  // wakes the reader, which notifies the owner
    return;
  }
  write_some();
}

void FrameConnection::write_some() {
  stalled_ = false;
  while (socket_.valid() && !unsent_.empty()) {
    Unsent& front = unsent_.front();
    const ssize_t count = send_front();
    if (count >= 0) {
      front.sent += static_cast<std::size_t>(count);
      if (front.sent < front.bytes.size()) continue;
      unsent_bytes_ -= front.bytes.size();
      unsent_.pop_front();
    } else if (errno == EAGAIN) {
      if (writing_) return;
      wait_.when_writable([this] {
        const auto self = shared_from_this();
        writing_ = false;
        write_some();
      });
      writing_ = true;  // not reached if when_writable() throws
      return;
    } else if (errno == ETOOMANYREFS || is_memory_shortage(errno)) {
      stalled_ = true;
      if (!retry_) retry_.emplace(loop_);
      return retry_->start(kShortagePause, [this] {
        const auto self = shared_from_this();
        write_some();
      });
    } else if (errno != EINTR) {
      // The other end may have sent frames before it closed the connection. The reader receives
      // them first, and then detects the end.
      unsent_.clear();
      shutdown(socket_.get(), SHUT_RDWR);
    }
  }
  if (self_) close();
}

long FrameConnection::send_front() {
  Unsent& front = unsent_.front();
  iovec part{front.bytes.data() + front.sent, front.bytes.size() - front.sent};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  DescriptorBuffer<kMostDescriptors> control;
  if (front.sent == 0 && !front.descriptors.empty())
    attach_descriptors(message, control.bytes, front.descriptors);
  return sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void FrameConnection::insist() {
  constexpr std::chrono::milliseconds kLongestPause{32};
  for (std::chrono::milliseconds pause{1}; stalled_ && pause <= kLongestPause; pause *= 2) {
    std::this_thread::sleep_for(pause);
    write_some();
  }
}

void FrameConnection::keep_alive() {
  const auto set = [this](int level, int option, int value) {
    setsockopt(socket_.get(), level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 2);   // seconds
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);  // seconds
  set(IPPROTO_TCP, TCP_KEEPCNT, 5);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 7000);  // milliseconds
}

void FrameConnection::finish(std::function<void()> done) {
  owner_ = nullptr;
  done_ = std::move(done);
  if (!socket_.valid() || unsent_.empty()) return close();
  self_ = shared_from_this();
  patience_.emplace(loop_);
  patience_->start(kFlushPatience, [this] {
    const auto self = shared_from_this();
    close();
  });
}

void FrameConnection::close() {
  owner_ = nullptr;
  unsent_.clear();
  received_descriptors_.clear();
  wait_.close();
  if (retry_) retry_->cancel();
  if (patience_) patience_->cancel();
  socket_.reset();
  const auto self = std::exchange(self_, nullptr);
  if (const auto done = std::exchange(done_, nullptr)) done();
}

FrameConnection::Detached FrameConnection::detach() {
  wait_.close();
  return {std::move(socket_), ends_, std::move(tls_), {}, std::move(received_)};
}

}  // namespace hccl::bootstrap
