// SPDX-License-Identifier: Apache-2.0
// Connections of a test to the sockets that the library listens on, with the bytes said as they
// are.
#pragma once

#include "base/address.h"
#include "base/secret.h"
#include "bootstrap/frame_channel.h"
#include "bootstrap/messages.h"
#include "bootstrap/poll.h"
#include "joining_ranks.h"

#include <filesystem>
#include <span>
#include <string>

#include <sys/socket.h>

namespace hccl::bootstrap::test {

inline FileDescriptor connect_to(const Address& address) {
  const SocketAddress where = to_socket_address(address);
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
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

inline void send_text(const FileDescriptor& socket, const std::string& said) {
  send_all(socket, std::as_bytes(std::span(said)));
}

// The frames the other side says until it closes, or until one of this type.
inline std::optional<Frame> read_until(FrameChannel& channel, FrameType type) {
  const Deadline deadline = Deadline::after(kPatience);
  while (!deadline.expired()) {
    std::optional<Frame> frame = channel.receive();
    if (frame && frame->type == type) return frame;
    if (frame) continue;
    if (channel.closed()) return std::nullopt;
    std::vector<pollfd> wanted{{channel.fd(), POLLIN, 0}};
    poll_until(wanted, deadline);
  }
  ADD_FAILURE() << "the other side neither answered nor closed";
  return std::nullopt;
}

// A rank's part of the handshake, up to its hello: the codes follow. False if nobody greets.
inline bool open_as_rank(FrameChannel& channel, std::span<const std::byte> key) {
  const Bytes opening = serialize(Opening{kProtocolVersion, random_secret(), {}, {}});
  channel.send(FrameType::opening, opening);
  const auto greeting = read_until(channel, FrameType::greeting);
  if (!greeting) return false;
  channel.authenticate(FrameSeal(FrameSeal::Role::rank, key, opening, greeting->payload));
  return true;
}

// A frame with its code.
inline Bytes sealed_frame(FrameSeal& seal, FrameType type, const Bytes& payload) {
  return encode_frame(type, payload, 0, seal.next_code(type, sha256(payload)));
}

// Waits until the other side has closed; false if it never does.
inline bool is_cut_off(const FileDescriptor& socket) {
  const Deadline deadline = Deadline::after(kPatience);
  while (!deadline.expired()) {
    std::vector<pollfd> wanted{{socket.get(), POLLIN, 0}};
    poll_until(wanted, deadline);
    std::array<std::byte, 4096> heard{};
    const ssize_t count = recv(socket.get(), heard.data(), heard.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno == ECONNRESET)) return true;
  }
  return false;
}

// How many descriptors this process has.
inline std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

}  // namespace hccl::bootstrap::test
