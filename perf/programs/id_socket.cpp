// SPDX-License-Identifier: Apache-2.0
// Exchanges the unique id over an abstract unix socket, which has no file and disappears with the
// processes. Serves only processes of the same user.
#include "id_exchange.h"
#include "text.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <set>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace hccl_perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kRetry = std::chrono::milliseconds(10);
constexpr int kClientMs = 2000;  // time limit for a peer's request or answer

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

struct Address {
  explicit Address(const std::string& name) {
    storage.sun_family = AF_UNIX;
    const std::size_t length = std::min(name.size(), sizeof storage.sun_path - 1);
    std::memcpy(storage.sun_path + 1, name.data(),
                length);  // the first byte stays 0, which makes the name abstract
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }

  sockaddr_un storage{};
  socklen_t size = 0;
};

std::string socket_name(const LaunchEnvironment& launch) {
  return text("hccl-perf.", getuid(), ".", launch.job);
}

bool is_own_user(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid();
}

int milliseconds_left(Clock::time_point until) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(left) + 1;
}

// Reads or writes all bytes. Returns false on an error, if the connection ends, or if the transfer
// takes longer than kClientMs.
template <class Transfer>
bool transfer_all(int descriptor, short direction, char* bytes, std::size_t size,
                  Transfer transfer) {
  const auto until = Clock::now() + std::chrono::milliseconds(kClientMs);
  for (std::size_t done = 0; done < size;) {
    pollfd ready{descriptor, direction, 0};
    if (poll(&ready, 1, milliseconds_left(until)) <= 0) return false;
    const ssize_t moved = transfer(descriptor, bytes + done, size - done);
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

bool receive_all(int descriptor, void* bytes, std::size_t size) {
  return transfer_all(
      descriptor, POLLIN, static_cast<char*>(bytes), size,
      [](int from, char* to, std::size_t most) { return recv(from, to, most, MSG_DONTWAIT); });
}

bool send_all(int descriptor, const void* bytes, std::size_t size) {
  char* start = const_cast<char*>(static_cast<const char*>(bytes));  // send() does not write to it
  return transfer_all(descriptor, POLLOUT, start, size,
                      [](int to, const char* from, std::size_t most) {
                        return send(to, from, most, MSG_DONTWAIT | MSG_NOSIGNAL);
                      });
}

// Sends the id to the processes that request it, until each of the other processes has it. Called
// on rank 0. Throws RunError if a process has not requested the id by the time `until`.
void serve(const LaunchEnvironment& launch, const hcclUniqueId& id, Clock::time_point until,
           double seconds) {
  const std::string name = socket_name(launch);
  const Address address(name);
  const auto fail = [&] {
    throw RunError(
        text("cannot serve the unique id on the socket @", name, ": ", std::strerror(errno)));
  };
  const Socket listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(listener.get(), address.get(), address.size) != 0 || listen(listener.get(), 1024) != 0)
    fail();
  std::set<int> missing;
  for (int rank = 1; rank < launch.size; ++rank) missing.insert(rank);
  while (!missing.empty()) {
    pollfd ready{listener.get(), POLLIN, 0};
    const int readable = poll(&ready, 1, milliseconds_left(until));
    if (readable < 0) {
      if (errno != EINTR) fail();
      continue;  // accept4() could block forever
    }
    if (readable == 0) {
      throw RunError(
          text("after ", seconds, " s, ", missing.size(), " of ", launch.size, " processes of the ",
               launch.launcher, " job have not requested the unique id, among them rank ",
               *missing.begin(), "; start all processes on this node, or set HCCL_COMM_ID"));
    }
    const Socket client(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    int rank = -1;
    if (client.get() >= 0 && is_own_user(client.get()) &&
        receive_all(client.get(), &rank, sizeof rank) && send_all(client.get(), &id, sizeof id)) {
      missing.erase(rank);
    }
  }
}

hcclUniqueId ask(const LaunchEnvironment& launch, Clock::time_point until, double seconds) {
  const std::string name = socket_name(launch);
  const Address address(name);
  while (Clock::now() < until) {
    const Socket client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    hcclUniqueId id{};
    if (connect(client.get(), address.get(), address.size) == 0 && is_own_user(client.get()) &&
        send_all(client.get(), &launch.rank, sizeof launch.rank) &&
        receive_all(client.get(), &id, sizeof id)) {
      return id;
    }
    std::this_thread::sleep_for(kRetry);  // rank 0 may not be listening yet
  }
  throw RunError(text("received no unique id from rank 0 on the socket @", name, " within ",
                      seconds, " s; start all processes on one node, or set HCCL_COMM_ID"));
}

}  // namespace

IdExchange exchange_by_socket(const LaunchEnvironment& launch, double seconds) {
  return [launch, seconds](const std::optional<hcclUniqueId>& mine) {
    if (launch.local_size >= 0 && !launch.on_one_node()) {
      throw RunError(text("the ", launch.launcher,
                          " job has several nodes and no PMIx to pass the unique id; "
                          "set HCCL_COMM_ID=address:port of rank 0's node"));
    }
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(seconds));
    if (!mine) return ask(launch, until, seconds);
    serve(launch, *mine, until, seconds);
    return *mine;
  };
}

}  // namespace hccl_perf
