// SPDX-License-Identifier: Apache-2.0
// A relay between ranks and the server. It forwards all bytes, and can tamper with one TLS record
// of each connection.
#pragma once

#include "base/text.h"
#include "bootstrap/pending_connections.h"
#include "bootstrap/unique_id.h"
#include "connections.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>

#include <poll.h>

namespace hccl::bootstrap::test {

struct Tampering {
  enum class Kind : std::uint8_t { change, drop, repeat, swap, cut };

  bool of_server = false;  // whether the record comes from the server
  int record = 0;          // counted from 0 for each end of a connection
  Kind kind = Kind::change;

  [[nodiscard]] std::string name() const {
    constexpr std::array<const char*, 5> kKinds{"Changed", "Dropped", "Repeated", "Swapped", "Cut"};
    return text(of_server ? "Server" : "Rank", record, kKinds.at(static_cast<std::size_t>(kind)));
  }
  friend std::ostream& operator<<(std::ostream& out, const Tampering& tampering) {
    return out << tampering.name();
  }
};

class Relay {
 public:
  // Relays between the server of `id` and the ranks that join with id(). `change`: applied to each
  // connection.
  Relay(UniqueId id, std::optional<Tampering> change)
      : server_(id.addresses.at(0)), id_(std::move(id)), change_(change) {
    listener_ = listen_on(Address{.bytes = {127, 0, 0, 1}});
    id_.addresses = {local_address(listener_.get())};
    thread_ = std::thread([this] { accept_connections(); });
  }
  ~Relay() {
    stopping_ = true;
    thread_.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  [[nodiscard]] const UniqueId& id() const { return id_; }

 private:
  void accept_connections() {
    std::vector<std::thread> connections;
    while (!stopping_) {
      pollfd wanted{listener_.get(), POLLIN, 0};
      if (poll(&wanted, 1, 5) != 1) continue;
      FileDescriptor rank(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      connections.emplace_back([this, rank = std::move(rank)] { relay_connection(rank); });
    }
    for (std::thread& connection : connections) connection.join();
  }

  void relay_connection(const FileDescriptor& rank) const {
    const FileDescriptor server = connect_to(server_);
    const std::array<const FileDescriptor*, 2> ends{&rank, &server};
    std::array<Direction, 2> directions;
    while (!stopping_) {
      std::array<pollfd, 2> wanted{pollfd{rank.get(), POLLIN, 0}, pollfd{server.get(), POLLIN, 0}};
      poll(wanted.data(), wanted.size(), 5);
      for (const std::size_t from : {0U, 1U}) {
        if (wanted[from].revents == 0) continue;
        std::array<std::byte, 65536> bytes;
        const ssize_t count = recv(ends[from]->get(), bytes.data(), bytes.size(), 0);
        if (count <= 0) return;
        Bytes& received = directions[from].received;
        received.insert(received.end(), bytes.begin(), bytes.begin() + count);
        const bool tampers = change_ && change_->of_server == (from == 1);
        while (const std::optional<Bytes> record = next_record(received)) {
          if (!forward(*record, directions[from], *ends[1 - from], tampers)) return;
        }
      }
    }
  }

  struct Direction {
    Bytes received;
    Bytes held;  // a record that is sent after the next one
    int records = 0;
  };

  static std::optional<Bytes> next_record(Bytes& received) {
    constexpr std::size_t kHeader = 5;
    if (received.size() < kHeader) return std::nullopt;
    const std::size_t size = kHeader + (std::to_integer<std::size_t>(received[3]) << 8) +
                             std::to_integer<std::size_t>(received[4]);
    if (received.size() < size) return std::nullopt;
    const auto end = received.begin() + static_cast<std::ptrdiff_t>(size);
    Bytes record(received.begin(), end);
    received.erase(received.begin(), end);
    return record;
  }

  // Sends the record on, or tampers with it. Returns false if the connection is to end.
  [[nodiscard]] bool forward(Bytes record, Direction& direction, const FileDescriptor& to,
                             bool tampers) const {
    const bool chosen = tampers && direction.records++ == change_->record;
    if (chosen && change_->kind == Tampering::Kind::drop) return true;
    if (chosen && change_->kind == Tampering::Kind::swap) {
      direction.held = std::move(record);
      return true;
    }
    if (chosen && change_->kind == Tampering::Kind::cut) {
      send_all(to, std::span(record).first(record.size() / 2));
      return false;
    }
    if (chosen && change_->kind == Tampering::Kind::change) record.back() ^= std::byte{1};
    send_all(to, record);
    if (chosen && change_->kind == Tampering::Kind::repeat) send_all(to, record);
    send_all(to, std::exchange(direction.held, {}));
    return true;
  }

  Address server_;
  UniqueId id_;
  std::optional<Tampering> change_;
  FileDescriptor listener_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace hccl::bootstrap::test
