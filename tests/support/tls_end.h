// SPDX-License-Identifier: Apache-2.0
// One end of a TLS connection over a socket, which shows the encrypted bytes to the test.
#pragma once

#include "base/fields.h"
#include "bootstrap/wire.h"
#include "crypto/tls_session.h"

#include <array>
#include <cstddef>
#include <span>

#include <poll.h>
#include <sys/socket.h>

namespace hccl::test {

class TlsEnd {
 public:
  // `socket` must stay open as long as the object exists.
  TlsEnd(int socket, crypto::TlsRole role, std::span<const std::byte> key)
      : socket_(socket), session_(role, key) {}

  // Performs the handshake. Blocks until the other end has answered, at most kPatience for each
  // message. Returns false if the handshake fails or the other end closes.
  [[nodiscard]] bool shake_hands() {
    send_all(take_output());
    std::array<std::byte, 16384> bytes{};
    while (session_.state() == crypto::TlsState::handshake) {
      pollfd wanted{socket_, POLLIN, 0};
      poll(&wanted, 1, kPatience);
      const ssize_t count = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count <= 0) return false;
      session_.receive(std::span(bytes).first(static_cast<std::size_t>(count)), received_);
      send_all(take_output());
    }
    return session_.state() == crypto::TlsState::established;
  }
  // Returns the encrypted bytes of a frame, without sending them. Call it after shake_hands().
  [[nodiscard]] Bytes encrypted(bootstrap::FrameType type, std::span<const std::byte> payload) {
    session_.send(bootstrap::encode_frame(type, payload));
    return take_output();
  }
  // Returns all bytes that this end has sent or returned.
  [[nodiscard]] const Bytes& sent() const { return sent_; }

 private:
  Bytes take_output() {
    Bytes bytes = session_.take_output();
    sent_.insert(sent_.end(), bytes.begin(), bytes.end());
    return bytes;
  }
  void send_all(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  static constexpr int kPatience = 20'000;  // milliseconds

  int socket_;
  crypto::TlsSession session_;
  Bytes sent_;
  Bytes received_;
};

}  // namespace hccl::test
