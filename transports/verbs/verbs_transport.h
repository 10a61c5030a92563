// SPDX-License-Identifier: Apache-2.0
// The transport between ranks that reach each other through RDMA over Ethernet (RoCE v2).
#pragma once

#include "transport/listener.h"
#include "transport/registry.h"
#include "verbs/device.h"
#include "verbs/registration_cache.h"
#include "verbs/verbs_address.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hccl::verbs {

class VerbsTransport final : public transport::Transport {
 public:
  // Opens the first usable port of `choice`. Throws Error(hcclSystemError) if the NIC cannot be
  // used, memory for streams cannot be locked, or no socket can listen at the port's address.
  // Throws Error(hcclOutOfMemory) if memory for streams cannot be mapped.
  VerbsTransport(const transport::Settings& settings, const VerbsLibrary& library,
                 PortChoice choice);

  [[nodiscard]] const Bytes& address() const override { return address_; }
  [[nodiscard]] transport::Reach reach(std::span<const std::byte> peer_address) const override;
  [[nodiscard]] std::unique_ptr<transport::Endpoint> open(
      int peer, transport::ConnectionId connection,
      std::span<const std::byte> peer_address) override;
  [[nodiscard]] bool registers_memory() const override { return true; }
  void register_memory(const transport::Region& region) override { cache_->add_region(region); }
  void invalidate(const transport::Region& region) override { cache_->invalidate(region); }
  [[nodiscard]] transport::Trouble trouble() override { return device_->check(); }
  [[nodiscard]] std::vector<std::string> remarks() const override { return remarks_; }

 private:
  [[nodiscard]] FileDescriptor listen();

  transport::Membership own_;
  transport::ConnectionLimits limits_;
  std::vector<std::string> remarks_;
  std::shared_ptr<RdmaDevice> device_;
  std::shared_ptr<RegistrationCache> cache_;
  VerbsAddress own_address_;
  Bytes address_;
  std::shared_ptr<transport::Listener> listener_;
};

[[nodiscard]] transport::MakeResult make_transport(const transport::Settings& settings);

}  // namespace hccl::verbs
