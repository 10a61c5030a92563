// SPDX-License-Identifier: Apache-2.0
// A relay between ranks and the server. It forwards all bytes, and can change one frame of each
// connection.
#pragma once

#include "bootstrap/pending_connections.h"
#include "bootstrap/unique_id.h"
#include "connections.h"

#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include <poll.h>

namespace hccl::bootstrap::test {

class Relay {
 public:
  // Relays between the server of `id` and the ranks that join with id(). If `change` is set,
  // changes a byte in the first frame of that type on each connection, whichever end sends it.
  Relay(UniqueId id, std::optional<FrameType> change)
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

  void relay_connection(const FileDescriptor& rank) {
    const FileDescriptor server = connect_to(server_);
    const std::array<const FileDescriptor*, 2> ends{&rank, &server};
    std::array<Bytes, 2> received;
    std::optional<FrameType> change = change_;
    while (!stopping_) {
      std::array<pollfd, 2> wanted{pollfd{rank.get(), POLLIN, 0}, pollfd{server.get(), POLLIN, 0}};
      poll(wanted.data(), wanted.size(), 5);
      for (const std::size_t from : {0U, 1U}) {
        if (wanted[from].revents == 0) continue;
        std::array<std::byte, 65536> bytes;
        const ssize_t count = recv(ends[from]->get(), bytes.data(), bytes.size(), 0);
        if (count <= 0) return;
        received[from].insert(received[from].end(), bytes.begin(), bytes.begin() + count);
        relay_frames(received[from], *ends[1 - from], change);
      }
    }
  }

  static void relay_frames(Bytes& received, const FileDescriptor& to,
                           std::optional<FrameType>& change) {
    while (received.size() >= kFrameHeaderSize) {
      const auto header =
          parse_header(std::span(received).first<kFrameHeaderSize>(), kLargePayload);
      const std::size_t size = kFrameHeaderSize + header->length;
      if (received.size() < size) return;
      if (change == header->type) {
        received[kFrameHeaderSize + 4] ^= std::byte{1};
        change.reset();
      }
      send_all(to, std::span(received).first(size));
      received.erase(received.begin(), received.begin() + static_cast<std::ptrdiff_t>(size));
    }
  }

  Address server_;
  UniqueId id_;
  std::optional<FrameType> change_;
  FileDescriptor listener_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace hccl::bootstrap::test
