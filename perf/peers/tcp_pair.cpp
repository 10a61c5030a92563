// SPDX-License-Identifier: Apache-2.0
// Measures a round trip of 8 bytes between two processes over one plain TCP connection, for the
// comparison over RoCE (roce.py).
//   RANK=0|1 tcp_pair poll|block ADDRESS PORT CALLS
// Rank 0 listens on the address, and rank 1 connects. Both ranks poll the socket, or block in
// recv(2). Rank 0 prints the microseconds per round trip: the median and the mean.
#include "pair.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using Message = std::array<char, 8>;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

int meet(int rank, const char* address, int port) {
  constexpr int kTries = 500;
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address, &where.sin_addr) != 1) fail(address);
  const int on = 1;
  const auto* const name = reinterpret_cast<const sockaddr*>(&where);
  for (int i = 0; rank == 1 && i < kTries; ++i, usleep(10000)) {
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, name, sizeof(where)) == 0) return connection;
    close(connection);
  }
  if (rank == 1) fail("connect");
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener, name, sizeof(where)) != 0 || listen(listener, 1) != 0) fail("listen");
  return accept(listener, nullptr, nullptr);
}

void take(int connection, int flags) {
  Message message{};
  for (std::size_t have = 0; have < message.size();) {
    const ssize_t got = recv(connection, message.data() + have, message.size() - have, flags);
    if (got == 0) std::exit(1);
    if (got > 0) have += static_cast<std::size_t>(got);
    if (got < 0 && errno != EAGAIN && errno != EINTR) fail("recv");
  }
}

void put(int connection) {
  const Message message{1};
  const ssize_t sent = send(connection, message.data(), message.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(message.size())) fail("send");
}

}  // namespace

int main(int argc, char** argv) {
  const char* const number = std::getenv("RANK");
  if (argc != 5 || number == nullptr) {
    std::fprintf(stderr, "usage: RANK=0|1 tcp_pair poll|block ADDRESS PORT CALLS\n");
    return 2;
  }
  const int rank = std::atoi(number);
  const int flags = std::strcmp(argv[1], "poll") == 0 ? MSG_DONTWAIT : 0;
  const int on = 1;
  const int connection = meet(rank, argv[2], std::atoi(argv[3]));
  if (connection < 0) return 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  peers::time_calls(rank, std::strtoull(argv[4], nullptr, 10), [&] {
    if (rank == 1) take(connection, flags);
    put(connection);
    if (rank == 0) take(connection, flags);
  });
  return 0;
}
