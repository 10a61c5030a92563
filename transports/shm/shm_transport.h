// SPDX-License-Identifier: Apache-2.0
// The transport between ranks of one node, which can share memory.
#pragma once

#include "shm/unix_socket.h"
#include "transport/listener.h"
#include "transport/registry.h"
#include "transport/transport.h"

#include <memory>

namespace hccl::shm {

class ShmTransport final : public transport::Transport {
 public:
  explicit ShmTransport(const transport::Settings& settings);

  [[nodiscard]] const Bytes& address() const override { return address_; }
  [[nodiscard]] transport::Reach reach(std::span<const std::byte> peer_address) const override;
  [[nodiscard]] std::unique_ptr<transport::Endpoint> open(
      int peer, transport::ConnectionId connection,
      std::span<const std::byte> peer_address) override;

 private:
  transport::Membership own_;
  transport::ConnectionLimits limits_;
  SocketName name_;
  Bytes node_;  // a hash of the node's identity
  Bytes address_;
  std::shared_ptr<transport::Listener> listener_;
};

[[nodiscard]] transport::MakeResult make_transport(const transport::Settings& settings);

}  // namespace hccl::shm
