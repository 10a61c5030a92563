// SPDX-License-Identifier: Apache-2.0
#include "on_path_relay.h"

#include "base/address.h"
#include "base/fields.h"
#include "base/file_descriptor.h"
#include "check.h"
#include "children.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <span>

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kDelay{120};
// SO_ORIGINAL_DST of <linux/netfilter_ipv4.h>, which conflicts with <netinet/in.h>.
constexpr int kOriginalDestination = 80;
constexpr int kPollMilliseconds = 2;

// Returns the size of the first record in `bytes`, or 0 if more bytes must arrive. A record is one
// of TLS, with a header of 5 bytes, or one of a protected stream: a header of 4 bytes, which
// contain the length, and a tag of 16. Once a record of a stream has passed, no record of TLS
// follows, and `is_stream` is set. Everything else counts as a record as it arrives.
std::size_t record_size(std::span<const std::byte> bytes, bool& is_stream) {
  constexpr std::size_t kTlsHeader = 5;
  constexpr std::size_t kStreamOverhead = 4 + 16;
  constexpr std::size_t kMostStreamBytes = std::size_t{64} << 10;
  if (bytes.size() < kTlsHeader) return 0;
  const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  std::size_t size = bytes.size();
  if (!is_stream && at(0) >= 20 && at(0) <= 23 && at(1) == 3 && at(2) <= 4) {
    size = kTlsHeader + (at(3) << 8) + at(4);
  } else if (const std::size_t length = at(0) + (at(1) << 8) + (at(2) << 16) + (at(3) << 24);
             length > 0 && length <= kMostStreamBytes) {
    is_stream = true;
    size = kStreamOverhead + length;
  }
  return size <= bytes.size() ? size : 0;
}

// One direction of a relayed connection.
struct Direction {
  struct Piece {
    Clock::time_point due;
    Bytes bytes;
  };
  Bytes received;
  std::deque<Piece> outgoing;
  std::optional<Bytes> held;  // a record that follows its successor
  int records = 0;
  bool is_stream = false;  // whether the TLS handshake is over
  bool ended = false;

  void send(Bytes bytes, Clock::duration delay = {}) {
    if (!bytes.empty()) outgoing.push_back({Clock::now() + delay, std::move(bytes)});
  }
  void send_held() {
    if (held) send(*std::exchange(held, std::nullopt));
  }
};

struct Relayed {
  std::array<FileDescriptor, 2> ends;   // the end that opened the connection, and the other
  std::array<Direction, 2> directions;  // from ends[0], and from ends[1]
  int number = 0;
  bool is_cut = false;
};

class Relay {
 public:
  Relay(const Attack& attack, bool attacks, Recording& recording, FileDescriptor listener,
        Clock::duration path_delay)
      : attack_(attack),
        attacks_(attacks),
        recording_(recording),
        listener_(std::move(listener)),
        path_delay_(path_delay),
        random_(attack.seed) {}

  [[noreturn]] void run() {
    while (true) {
      wait();
      accept_all();
      for (Relayed& one : connections_) serve(one);
      std::erase_if(connections_, [](const Relayed& one) { return one.is_cut; });
    }
  }

 private:
  void wait() {
    std::vector<pollfd> wanted{{listener_.get(), POLLIN, 0}};
    for (const Relayed& one : connections_) {
      for (const std::size_t from : {0U, 1U}) {
        short events = one.directions[from].ended ? 0 : POLLIN;
        if (!one.directions[1 - from].outgoing.empty()) events |= POLLOUT;
        wanted.push_back({one.ends[from].get(), events, 0});
      }
    }
    poll(wanted.data(), wanted.size(), kPollMilliseconds);
  }

  void accept_all() {
    while (true) {
      FileDescriptor near(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!near.valid()) return;
      sockaddr_in wanted{};
      socklen_t length = sizeof(wanted);
      getsockopt(near.get(), SOL_IP, kOriginalDestination, &wanted, &length);
      FileDescriptor far(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (connect(far.get(), reinterpret_cast<const sockaddr*>(&wanted), length) != 0) continue;
      Relayed& added = connections_.emplace_back();
      added.ends = {std::move(near), std::move(far)};
      added.number = next_number_++;
    }
  }

  void serve(Relayed& one) {
    for (const std::size_t from : {0U, 1U}) {
      Direction& direction = one.directions[from];
      receive(one.ends[from], direction);
      while (!one.is_cut) {
        const std::size_t size = record_size(direction.received, direction.is_stream);
        if (size == 0) break;
        const auto end = direction.received.begin() + static_cast<std::ptrdiff_t>(size);
        Bytes record(direction.received.begin(), end);
        direction.received.erase(direction.received.begin(), end);
        forward(one, from, std::move(record));
      }
      send(one.ends[1 - from], direction);
      if (direction.ended && direction.held) direction.send_held();
      if (direction.ended && direction.outgoing.empty())
        shutdown(one.ends[1 - from].get(), SHUT_WR);
    }
    const bool both_ended = one.directions[0].ended && one.directions[1].ended;
    if (both_ended && one.directions[0].outgoing.empty() && one.directions[1].outgoing.empty())
      one.is_cut = true;
  }

  static void receive(const FileDescriptor& socket, Direction& direction) {
    std::array<std::byte, 65536> bytes;
    while (!direction.ended) {
      const ssize_t count = recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      direction.ended = count <= 0;
      if (count > 0) {
        direction.received.insert(direction.received.end(), bytes.begin(), bytes.begin() + count);
      } else if (!direction.received.empty()) {
        direction.send(std::move(direction.received));
        direction.received.clear();
      }
    }
  }

  static void send(const FileDescriptor& socket, Direction& direction) {
    while (!direction.outgoing.empty() && direction.outgoing.front().due <= Clock::now()) {
      Bytes& bytes = direction.outgoing.front().bytes;
      const ssize_t count =
          ::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count < 0) return direction.outgoing.clear();
      bytes.erase(bytes.begin(), bytes.begin() + count);
      if (bytes.empty()) direction.outgoing.pop_front();
    }
  }

  void forward(Relayed& one, std::size_t from, Bytes record) {
    Direction& direction = one.directions[from];
    const Bytes earlier = recorded();
    keep(record);
    const bool chosen = attacks_ && one.number == attack_.connection &&
                        (from == 1) == attack_.backward && direction.records == attack_.record;
    ++direction.records;
    if (!chosen) {
      direction.send(std::move(record), path_delay_);
      return direction.send_held();
    }
    recording_.has_tampered = attack_.kind != Tampering::replay || !earlier.empty();
    tamper(one, from, std::move(record), earlier);
  }

  void tamper(Relayed& one, std::size_t from, Bytes record, const Bytes& earlier) {
    Direction& direction = one.directions[from];
    switch (attack_.kind) {
      case Tampering::none:
        break;
      case Tampering::change:
        record[random_() % record.size()] ^= static_cast<std::byte>(1 + random_() % 255);
        break;
      case Tampering::drop:
        return;
      case Tampering::repeat:
        direction.send(record);
        break;
      case Tampering::swap:
        direction.held = std::move(record);
        return;
      case Tampering::delay:
        return direction.send(std::move(record), kDelay);
      case Tampering::shorten:
        record.resize(record.size() - 1 - random_() % record.size());
        break;
      case Tampering::insert:
        direction.send(random_bytes(1 + random_() % 300));
        break;
      case Tampering::reflect:
        one.directions[1 - from].send(record);
        break;
      case Tampering::replay:
        direction.send(earlier);
        break;
      case Tampering::cut:
        record.resize(record.size() / 2);
        direction.send(std::move(record));
        send(one.ends[1 - from], direction);
        one.is_cut = true;
        return;
    }
    direction.send(std::move(record));
  }

  Bytes random_bytes(std::size_t count) {
    Bytes bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }

  void keep(const Bytes& bytes) {
    if (bytes.size() > Recording::kMostBytes) return;
    Recording::Record& record = recording_.records.at(recording_.next++ % Recording::kRecords);
    std::copy(bytes.begin(), bytes.end(), record.bytes.begin());
    record.size = static_cast<std::uint32_t>(bytes.size());
  }
  // Returns a record that keep() has kept, or nothing if there is none yet.
  Bytes recorded() {
    const std::uint32_t kept = std::min<std::uint32_t>(recording_.next, Recording::kRecords);
    if (kept == 0) return {};
    const Recording::Record& record = recording_.records.at(random_() % kept);
    return {record.bytes.begin(), record.bytes.begin() + record.size};
  }

  const Attack attack_;
  const bool attacks_;
  Recording& recording_;
  FileDescriptor listener_;
  const Clock::duration path_delay_;
  std::mt19937_64 random_;
  std::list<Relayed> connections_;
  int next_number_ = 0;
};

FileDescriptor listen_on_path() {
  FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(OnPathRelay::kPort);
  const bool listens =
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)) == 0 &&
      listen(listener.get(), SOMAXCONN) == 0;
  require(listens, "the relay listens");
  return listener;
}

void become_the_attacker() {
  constexpr uid_t kUser = OnPathRelay::kUser;
  require(setresgid(kUser, kUser, kUser) == 0 && setresuid(kUser, kUser, kUser) == 0,
          "the relay runs as another user");
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of user clears this setting
}

}  // namespace

Attack Attack::random(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Attack attack;
  attack.kind = static_cast<Tampering>(1 + random() % (kTamperings - 1));
  attack.host = static_cast<int>(random() % 2);
  attack.connection = static_cast<int>(random() % (attack.host == 0 ? 6 : 2));
  attack.backward = random() % 2 == 1;
  attack.record = static_cast<int>(random() % 9);
  attack.seed = random();
  return attack;
}

std::string Attack::text() const {
  constexpr std::array<const char*, kTamperings> kNames{"none",    "change", "drop",    "repeat",
                                                        "swap",    "delay",  "shorten", "insert",
                                                        "reflect", "replay", "cut"};
  return join(kNames.at(static_cast<std::size_t>(kind)), ", connection ", connection, " of host ",
              host, backward ? ", backward" : ", forward", ", record ", record);
}

OnPathRelay::OnPathRelay(const HostNetwork& network, int host, const Attack& attack,
                         Recording& recording, std::chrono::milliseconds delay) {
  std::array<int, 2> ready{-1, -1};
  require(pipe(ready.data()) == 0, "a pipe");
  process_ = start_child([&]() -> int {
    network.enter(host);
    FileDescriptor listener = listen_on_path();
    become_the_attacker();
    if (write(ready[1], "", 1) != 1) return 1;
    Relay(attack, attack.host == host, recording, std::move(listener), delay).run();
  });
  close(ready[1]);
  char byte = 0;
  const bool is_ready = read(ready[0], &byte, 1) == 1;
  close(ready[0]);
  require(is_ready, "the relay starts");
}

OnPathRelay::~OnPathRelay() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

}  // namespace hccl::test
