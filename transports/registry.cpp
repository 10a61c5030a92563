// SPDX-License-Identifier: Apache-2.0
// The list of built-in transports.
#include "transport/registry.h"

#include "shm/shm_transport.h"
#include "tcp/tcp_transport.h"
#include "verbs/verbs_transport.h"

#include <array>

namespace hccl::transport {

std::span<const TransportFactory> transport_factories() {
  static constexpr std::array kFactories{
      TransportFactory{"shm", shm::make_transport},
      TransportFactory{"verbs", verbs::make_transport},
      TransportFactory{"tcp", tcp::make_transport},
  };
  return kFactories;
}

}  // namespace hccl::transport
