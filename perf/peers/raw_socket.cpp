// SPDX-License-Identifier: Apache-2.0
// The socket floor: the time that two processes on this machine need to exchange a command's bytes
// over one plain TCP connection on loopback, in both directions at once. With mode=latency, an
// iteration is a round trip of two messages.
//   raw_socket
// Only collective=sendrecv is supported. `variant` selects the socket buffers (0-2: the kernel's
// default; 3-5: 1 MiB; 6-8: 4 MiB). Within a group, the variants differ in the bytes per system
// call (64 KiB, 512 KiB, everything).
#include "child.h"
#include "command.h"
#include "processes.h"
#include "session.h"
#include "shape.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace peers {
namespace {

constexpr int kRanks = 2;
constexpr std::array<int, 3> kSocketBuffers{0, 1 << 20, 4 << 20};
constexpr std::array<std::size_t, 3> kCallBytes{std::size_t{64} << 10, std::size_t{512} << 10,
                                                std::numeric_limits<std::size_t>::max()};
constexpr int kVariants = static_cast<int>(kSocketBuffers.size() * kCallBytes.size());
// The number of times that a process yields and tries again before it sleeps in poll(2).
constexpr int kYields = 1000;

int require(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

sockaddr* generic(sockaddr_in& address) {
  return static_cast<sockaddr*>(static_cast<void*>(&address));
}

// Listens on a free port of loopback. Connections inherit the listener's buffer sizes.
int listen_with(int buffer_bytes) {
  const int listener = require(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  if (buffer_bytes > 0) {
    setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(bind(listener, generic(address), sizeof(address)), "bind");
  require(listen(listener, 1), "listen");
  return listener;
}

int connect_with(int listener, int buffer_bytes) {
  const int connection = require(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  if (buffer_bytes > 0) {
    setsockopt(connection, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
    setsockopt(connection, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
  }
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  require(getsockname(listener, generic(address), &length), "getsockname");
  require(connect(connection, generic(address), length), "connect");
  return connection;
}

// One end of a connection for each socket buffer size.
class SocketEngine final : public Engine {
 public:
  SocketEngine(std::array<int, 3> connections, int rank) : connections_(connections), rank_(rank) {
    const int on = 1;
    for (const int connection : connections_) {
      setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      // Uses Reno, as hccl does on loopback: the system's default may be BBR, which paces the
      // sender.
      setsockopt(connection, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    }
  }

  void prepare(const Command& command) override {
    if (command.collective != Collective::send_receive || command.in_place)
      throw std::runtime_error("this driver supports only sendrecv, out of place");
    if (command.variant < 0 || command.variant >= kVariants)
      throw std::runtime_error("variant must be between 0 and " + std::to_string(kVariants - 1));
    const auto variant = static_cast<std::size_t>(command.variant);
    socket_ = connections_.at(variant / kCallBytes.size());
    call_bytes_ = kCallBytes.at(variant % kCallBytes.size());
    const Shape shape = shape_of(command, rank_, kRanks);
    send_.resize(shape.send_count);
    recv_.assign(shape.recv_count, kPoison);
    fill_for_timing(command, rank_, send_);
  }

  void run(const Command& command, std::uint64_t iterations) override {
    for (std::uint64_t i = 0; i < iterations; ++i) {
      if (!command.latency) {
        exchange(true, true);
      } else if (rank_ == 0) {
        exchange(true, false);
        exchange(false, true);
      } else {
        exchange(false, true);
        exchange(true, false);
      }
    }
  }

  std::uint64_t verify(const Command& command) override {
    prepare(command);
    send_ = make_input(shape_of(command, rank_, kRanks), rank_);
    run(command, 1);
    return count_wrong(command, rank_, kRanks, recv_);
  }

 private:
  void exchange(bool sends, bool receives) const {
    auto out = std::as_bytes(std::span(send_)).first(sends ? send_.size() * sizeof(float) : 0);
    auto in =
        std::as_writable_bytes(std::span(recv_)).first(receives ? recv_.size() * sizeof(float) : 0);
    int yields = 0;
    while (!out.empty() || !in.empty()) {
      const std::size_t sent = move(out, [this](const auto& part) {
        return ::send(socket_, part.data(), part.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      });
      const std::size_t received = move(in, [this](const auto& part) {
        return ::recv(socket_, part.data(), part.size(), MSG_DONTWAIT);
      });
      out = out.subspan(sent);
      in = in.subspan(received);
      if (sent + received > 0) {
        yields = 0;
      } else if (++yields < kYields) {
        sched_yield();
      } else {
        const int events = (out.empty() ? 0 : POLLOUT) | (in.empty() ? 0 : POLLIN);
        pollfd entry{socket_, static_cast<short>(events), 0};
        poll(&entry, 1, -1);
      }
    }
  }

  template <class Bytes, class Call>
  [[nodiscard]] std::size_t move(const Bytes& bytes, Call call) const {
    if (bytes.empty()) return 0;
    const ssize_t count = call(bytes.first(std::min(bytes.size(), call_bytes_)));
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0) throw std::runtime_error("the other process has exited");
    if (errno != EAGAIN && errno != EINTR) require(-1, "the connection failed");
    return 0;
  }

  std::array<int, 3> connections_;
  int rank_;
  int socket_ = -1;
  std::size_t call_bytes_ = 0;
  std::vector<float> send_;
  mutable std::vector<float> recv_;
};

int run_driver() {
  const hccl_perf::Shared<CommandBoard> board;
  initialise(*board, kRanks);
  std::array<std::array<int, 3>, kRanks> ends{};
  for (std::size_t i = 0; i < kSocketBuffers.size(); ++i) {
    const int listener = listen_with(kSocketBuffers.at(i));
    ends[0].at(i) = connect_with(listener, kSocketBuffers.at(i));
    ends[1].at(i) = require(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), "accept");
    close(listener);
  }
  return run_processes("raw_socket", kRanks, [&](int rank) {
    SocketEngine engine(ends.at(static_cast<std::size_t>(rank)), rank);
    return serve(*board, rank, engine, "raw socket, 2 processes on loopback");
  });
}

}  // namespace
}  // namespace peers

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    return peers::run_driver();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "raw_socket: %s\n", error.what());
    return 1;
  }
}
