// SPDX-License-Identifier: Apache-2.0
// Connects a test to the library's listening sockets, and sends arbitrary bytes.
#pragma once

#include "base/address.h"
#include "base/secret.h"
#include "bootstrap/event_loop.h"
#include "bootstrap/frame_connection.h"
#include "bootstrap/messages.h"
#include "bootstrap/shared_secret.h"
#include "joining_ranks.h"
#include "tls_end.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <poll.h>
#include <sys/socket.h>

namespace hccl::bootstrap::test {

using hccl::test::TlsEnd;

inline FileDescriptor connect_to(const Address& address, const Address& from = {}) {
  const SocketAddress where = to_socket_address(address);
  const SocketAddress source = to_socket_address(from);
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bind(socket.get(), source.get(), source.length), 0);
  EXPECT_EQ(connect(socket.get(), where.get(), where.length), 0);
  return socket;
}

inline void send_all(const FileDescriptor& socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

inline void send_text(const FileDescriptor& socket, const std::string& message) {
  send_all(socket, std::as_bytes(std::span(message)));
}

// The test's end of a connection, with an event loop of its own.
class FarEnd {
 public:
  // An unencrypted connection.
  explicit FarEnd(FileDescriptor socket) : FarEnd(std::move(socket), nullptr) {}
  // A rank's encrypted connection.
  FarEnd(FileDescriptor socket, const JoinKey& key)
      : FarEnd(std::move(socket),
               std::make_shared<crypto::TlsSession>(crypto::TlsRole::client, key.session_key())) {}

  [[nodiscard]] FrameConnection* operator->() const { return connection_.get(); }
  // Reads frames until one of this type arrives, and returns that frame. Returns nothing if the
  // other end closes first. After kPatience, fails the test and returns nothing.
  [[nodiscard]] std::optional<Frame> read_until(FrameType type) {
    const Deadline deadline = Deadline::after(kPatience);
    while (!deadline.expired()) {
      std::optional<Frame> frame = connection_->receive();
      if (frame && frame->type == type) return frame;
      if (frame) continue;
      if (connection_->ended()) return std::nullopt;
      loop_.run_one(deadline);
    }
    ADD_FAILURE() << "the other end neither answered nor closed";
    return std::nullopt;
  }

 private:
  FarEnd(FileDescriptor socket, std::shared_ptr<crypto::TlsSession> tls)
      : connection_(std::make_shared<FrameConnection>(
            loop_, FrameConnection::Detached{std::move(socket), {}, std::move(tls)},
            FrameConnection::Limits{.payload = kLargePayload})) {}

  EventLoop loop_;
  std::shared_ptr<FrameConnection> connection_;
};

// Waits until the other end has closed the connection. Returns false if the connection is still
// open after kPatience.
inline bool is_cut_off(const FileDescriptor& socket) {
  const Deadline deadline = Deadline::after(kPatience);
  while (!deadline.expired()) {
    pollfd wanted{socket.get(), POLLIN, 0};
    poll(&wanted, 1, 1000);
    std::array<std::byte, 4096> received{};
    const ssize_t count = recv(socket.get(), received.data(), received.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno == ECONNRESET)) return true;
  }
  return false;
}

// Returns the number of open descriptors of this process, including the one that this function
// opens.
inline std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

}  // namespace hccl::bootstrap::test
