// SPDX-License-Identifier: Apache-2.0
// The connections come from many loopback addresses, because one address has too few ports for
// thousands of connections per second.
#include "storm.h"

#include "base/secret.h"
#include "bootstrap/messages.h"
#include "check.h"
#include "crypto/tls_session.h"

#include <array>
#include <cerrno>
#include <functional>
#include <string_view>
#include <thread>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace hccl::test {

using bootstrap::FrameType;

namespace {

constexpr std::size_t kMostOpen = 300;
constexpr int kConnectMilliseconds = 5000;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Bytes header(std::uint8_t type, std::uint8_t descriptors, std::uint16_t reserved,
             std::uint32_t length) {
  Bytes frame = bootstrap::encode_frame(FrameType::hello, {});
  WireWriter writer;
  writer.put_bytes(std::span(frame).first(4));
  writer.put_u8(type);
  writer.put_u8(descriptors);
  writer.put_u16(reserved);
  writer.put_u32(length);
  return writer.take();
}

// Returns whether a non-blocking connect() that returned `result` succeeds within 5 seconds.
bool is_connected(const FileDescriptor& socket, int result) {
  if (result == 0 || errno != EINPROGRESS) return result == 0;
  pollfd wanted{socket.get(), POLLOUT, 0};
  return poll(&wanted, 1, kConnectMilliseconds) == 1 && (wanted.revents & POLLERR) == 0;
}

bool is_closed(const FileDescriptor& socket) {
  std::array<std::byte, 4096> heard{};
  while (true) {
    const ssize_t count = recv(socket.get(), heard.data(), heard.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return true;
    if (count < 0 && errno == EAGAIN) return false;
  }
}

}  // namespace

Storm::Storm(const hcclUniqueId& id, int ranks, unsigned long long seed)
    : id_(bootstrap::decode(id)), key_(bootstrap::JoinKey(id_)), ranks_(ranks), random_(seed) {}

FileDescriptor Storm::connect_once() {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  Address from;
  from.bytes = {127, 9, static_cast<std::uint8_t>(made_ / 100),
                static_cast<std::uint8_t>(1 + made_ % 100)};
  ++made_;
  const SocketAddress source = to_socket_address(from);
  const SocketAddress where = to_socket_address(id_.addresses.at(0));
  bool good = bind(socket.get(), source.get(), source.length) == 0;
  good = good && is_connected(socket, connect(socket.get(), where.get(), where.length));
  if (!good) {
    ++failed_;
    socket.reset();
  }
  return socket;
}

Bytes Storm::garbage() {
  Bytes bytes(1 + random_() % 2000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
  return bytes;
}

// Returns a rank's first message of the handshake and, as in a replay, bytes that do not match the
// server's answer.
Bytes Storm::hello(int rank, int size) {
  crypto::TlsSession session(crypto::TlsRole::client, key_.session_key());
  Bytes bytes = session.take_output();
  const bootstrap::Hello claim{
      .rank = rank, .size = size, .process = bootstrap::ProcessIdentity::mine()};
  const Bytes frame = encode_frame(FrameType::hello, serialize(claim));
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  return bytes;
}

Bytes Storm::next_bytes() {
  const std::array<std::function<Bytes()>, 14> kinds{
      [&] { return garbage(); },
      [&] { return bytes_of("GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"); },
      [&] {
        return bytes_of({"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11});
      },
      [&] { return header(3, 0, 0x0102, 0); },      // another version's header
      [&] { return header(0xEE, 0, 0, 0); },        // an unknown type
      [&] { return header(3, 0, 0, 0xFFFFFFFF); },  // a huge length
      [&] { return header(3, 255, 0, 16); },        // announces descriptors
      [&] { return hello(ranks_ + 91, ranks_); },   // a rank out of range
      [&] { return hello(1 << 30, ranks_); },
      [&] { return hello(3 % ranks_, ranks_); },
      [&] { return encode_frame(FrameType::ready, {}); },
      [&] { return encode_frame(FrameType::leaving, garbage()); },
      [&] {
        Bytes cut = hello(1 % ranks_, ranks_);
        cut.resize(1 + random_() % (cut.size() - 1));
        return cut;
      },
      [] { return Bytes(); }};
  return kinds.at(kind_++ % kinds.size())();
}

void Storm::add_silent(int count) {
  for (int i = 0; i < count; ++i) {
    FileDescriptor socket = connect_once();
    if (socket.valid()) silent_.push_back(std::move(socket));
  }
}

void Storm::attack(int count) {
  for (int i = 0; i < count; ++i) {
    const Bytes sent = next_bytes();
    FileDescriptor socket = connect_once();
    if (!socket.valid()) continue;
    static_cast<void>(send(socket.get(), sent.data(), sent.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    if (random_() % 2 == 0) continue;
    open_.push_back(std::move(socket));
    if (open_.size() > kMostOpen) open_.pop_front();
  }
}

bool Storm::all_cut_off() {
  for (int attempt = 0; attempt < 3000; ++attempt) {
    std::erase_if(silent_, is_closed);
    std::erase_if(open_, is_closed);
    if (silent_.empty() && open_.empty()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace hccl::test
