// SPDX-License-Identifier: Apache-2.0
// The transport between ranks that reach each other over IPv4 or IPv6.
#pragma once

#include "tcp/addresses.h"
#include "transport/listener.h"
#include "transport/registry.h"
#include "transport/transport.h"

#include <memory>

namespace hccl::tcp {

class TcpTransport final : public transport::Transport {
 public:
  // Listens at each offered address, with a separate port for each. Throws
  // Error(hcclInvalidArgument or hcclSystemError).
  explicit TcpTransport(const transport::Settings& settings);

  [[nodiscard]] const Bytes& address() const override { return address_; }
  [[nodiscard]] transport::Reach reach(std::span<const std::byte> peer_address) const override;
  [[nodiscard]] std::unique_ptr<transport::Endpoint> open(
      int peer, transport::ConnectionId connection,
      std::span<const std::byte> peer_address) override;
  [[nodiscard]] std::vector<std::string> remarks() const override { return remarks_; }
  [[nodiscard]] std::string fallback_for() const override { return "RoCE"; }

 private:
  [[nodiscard]] std::vector<FileDescriptor> listen(const std::vector<Interface>& interfaces);

  transport::Membership own_;
  transport::ConnectionLimits limits_;
  transport::LeastProtection least_protection_;
  std::vector<std::string> remarks_;
  TcpAddresses own_addresses_;
  Bytes address_;
  std::shared_ptr<transport::Listener> listener_;
};

[[nodiscard]] transport::MakeResult make_transport(const transport::Settings& settings);

}  // namespace hccl::tcp
