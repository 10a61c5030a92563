// SPDX-License-Identifier: Apache-2.0
// Asio reads and writes of one connection. Every handler holds the session, so it outlives its
// owner's interest.
#include "bootstrap/session.h"

#include "base/interfaces.h"
#include "base/retry.h"
#include "base/text.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/socket_owner.h"

#include <deque>
#include <new>

#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <netinet/tcp.h>

namespace hccl::bootstrap {
namespace {

constexpr std::chrono::seconds kFlushPatience{1};
constexpr std::size_t kMostUnsent = std::size_t{64} << 20;
constexpr std::size_t kMostReceived = kFrameHeaderSize + kSmallPayload;

}  // namespace

struct Session::Io {
  explicit Io(asio::io_context& context) : socket(context), timer(context), retry(context) {}

  asio::ip::tcp::socket socket;
  asio::steady_timer timer;
  asio::steady_timer retry;  // of a write for which memory was short
  Bytes received;
  std::deque<Bytes> unsent;
  std::size_t unsent_bytes = 0;
  std::size_t sent = 0;  // of the first unsent frame
  bool writing = false;
  bool finishing = false;
  bool has_deadline = false;
  bool heard_anything = false;
};

// Runs a handler. Nobody would read from or write to a session after one that found no memory, so
// its owner, and the other side, take it for closed.
template <class Handler>
void Session::serve(Handler handler) {
  try {
    handler();
  } catch (const std::bad_alloc&) {
    fail("cannot be served: no memory is left; free memory on that host");
  }
}

Session::Session(FileDescriptor socket, const Address& peer, Owner& owner)
    : io_(std::make_unique<Io>(ControlThread::instance().context())),
      local_(local_address(socket.get())),
      peer_(peer),
      owner_(&owner) {
  std::error_code error;
  io_->socket.assign(peer.v6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), socket.get(), error);
  if (error) return;
  close_in_forked_children(socket.release());
  io_->socket.set_option(asio::ip::tcp::no_delay(true), error);
  io_->socket.non_blocking(true, error);
}

Session::~Session() { close(); }

std::string Session::ends() const { return connection_text(local_, peer_); }

void Session::start(Bytes heard) {
  if (!io_->socket.is_open()) return fail("cannot be registered with epoll");
  io_->heard_anything = !heard.empty();
  io_->received = std::move(heard);
  take_frames();
}

void Session::set_deadline(std::chrono::milliseconds limit) {
  io_->has_deadline = true;
  io_->timer.expires_after(limit);
  io_->timer.async_wait([self = shared_from_this()](const std::error_code& error) {
    // A timer that fired just before it was cancelled reports no error.
    if (!error && self->io_->has_deadline) self->fail("sent no valid hello in time");
  });
}

void Session::lift_deadline() {
  io_->has_deadline = false;
  io_->timer.cancel();
}

void Session::read_some() {
  Io& io = *io_;
  const std::size_t before = io.received.size();
  io.received.resize(kMostReceived);
  io.socket.async_read_some(
      asio::buffer(io.received) + before,
      [self = shared_from_this(), before](const std::error_code& error, std::size_t count) {
        self->serve([&] { self->take_bytes(before, error, count); });
      });
}

void Session::take_bytes(std::size_t before, const std::error_code& error, std::size_t count) {
  Io& io = *io_;
  io.received.resize(before + count);
  if (error) {
    left_silently = !io.heard_anything;
    if (error != asio::error::eof && error != asio::error::connection_reset)
      return fail(text("cannot be reached: ", error.message()));
    return fail(before == 0 ? "closed the connection" : "closed the connection within a frame");
  }
  io.heard_anything = true;
  take_frames();
}

void Session::take_frames() {
  Bytes& received = io_->received;
  while (owner_ != nullptr) {
    if (rank < 0 && !may_become_hello(received))
      return fail("sent bytes that are no hello of ours");
    if (received.size() < kFrameHeaderSize) return read_some();
    const std::span<const std::byte> bytes(received);
    const auto header = parse_header(bytes.first<kFrameHeaderSize>(), kSmallPayload);
    if (!header || header->descriptors != 0) return fail("sent bytes that are no frame of ours");
    const std::size_t end = kFrameHeaderSize + header->length;
    if (received.size() < end) return read_some();
    Frame frame;
    frame.type = header->type;
    const auto payload = bytes.subspan(kFrameHeaderSize, header->length);
    frame.payload.assign(payload.begin(), payload.end());
    received.erase(received.begin(), received.begin() + static_cast<std::ptrdiff_t>(end));
    if (seal_ && !seal_->open(frame)) return owner_->on_forged(*this);
    owner_->on_frame(*this, frame);
  }
}

void Session::send(FrameType type, std::span<const std::byte> payload) {
  send(type, payload, seal_ ? sha256(payload) : Digest{});
}

void Session::send(FrameType type, std::span<const std::byte> payload, const Digest& digest) {
  if (!seal_) return send_openly(type, payload);
  queue(encode_frame(type, payload, 0, seal_->next_code(type, digest)));
}

void Session::send_openly(FrameType type, std::span<const std::byte> payload) {
  queue(encode_frame(type, payload));
}

void Session::queue(Bytes frame) {
  if (!io_->socket.is_open() || io_->finishing) return;
  io_->unsent.push_back(std::move(frame));
  io_->unsent_bytes += io_->unsent.back().size();
  if (io_->unsent_bytes > kMostUnsent) return fail("does not read what it is sent");
  if (io_->unsent.size() == 1) write_now();
  if (!io_->unsent.empty() && !io_->writing) write_rest();
}

// Data that the connection takes at once has left before this process can end because of what
// another rank was told. Errors show in write_rest(), where no caller is in the middle of
// something.
void Session::write_now() {
  Io& io = *io_;
  std::error_code error;
  while (!io.unsent.empty() && !error) {
    io.sent += io.socket.write_some(asio::buffer(io.unsent.front()) + io.sent, error);
    if (io.sent == io.unsent.front().size()) drop_sent();
  }
}

void Session::write_rest() {
  Io& io = *io_;
  io.writing = true;
  asio::async_write(io.socket, asio::buffer(io.unsent.front()) + io.sent,
                    [self = shared_from_this()](const std::error_code& error, std::size_t count) {
                      self->serve([&] { self->note_written(error, count); });
                    });
}

void Session::note_written(const std::error_code& error, std::size_t count) {
  io_->sent += count;
  if (is_memory_shortage(error.value())) return write_later();
  if (error) return fail("closed the connection");
  io_->writing = false;
  drop_sent();
  if (!io_->unsent.empty()) return write_rest();
  if (io_->finishing) close();
}

void Session::write_later() {
  io_->retry.expires_after(kShortagePause);
  io_->retry.async_wait([self = shared_from_this()](const std::error_code& error) {
    if (!error && self->io_->socket.is_open()) self->serve([&] { self->write_rest(); });
  });
}

void Session::drop_sent() {
  io_->unsent_bytes -= io_->unsent.front().size();
  io_->unsent.pop_front();
  io_->sent = 0;
}

void Session::keep_alive() {
  const auto set = [this](int level, int option, int value) {
    setsockopt(io_->socket.native_handle(), level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 2);   // seconds
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);  // seconds
  set(IPPROTO_TCP, TCP_KEEPCNT, 5);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 7000);  // milliseconds
}

void Session::finish() {
  owner_ = nullptr;
  if (!io_->socket.is_open()) return;
  if (io_->unsent.empty()) return close();
  io_->finishing = true;
  set_deadline(kFlushPatience);
}

void Session::close() {
  owner_ = nullptr;
  lift_deadline();
  io_->retry.cancel();
  if (!io_->socket.is_open()) return;
  forget_in_forked_children(io_->socket.native_handle());
  std::error_code ignored;
  io_->socket.close(ignored);
}

SocketOwner Session::peer_owner() const { return tcp_peer_owner(io_->socket.native_handle()); }

bool Session::is_local() const { return peer_is_local(io_->socket.native_handle()); }

Address Session::own_address() const { return local_address(io_->socket.native_handle()); }

void Session::fail(const std::string& why) {
  Owner* const owner = std::exchange(owner_, nullptr);
  const auto self = shared_from_this();
  close();
  if (owner != nullptr) owner->on_closed(*this, why);
}

}  // namespace hccl::bootstrap
