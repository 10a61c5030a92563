// SPDX-License-Identifier: Apache-2.0
// The transports that are built in. Defined in transports/registry.cpp: nothing in src includes
// them.
#pragma once

#include "transport/transport.h"

#include <memory>
#include <span>

namespace hccl::transport {

struct TransportFactory {
  const char* name;
  // Throws Error where this process cannot offer the transport.
  std::unique_ptr<Transport> (*make)(const Settings& settings);
};

// Best first.
[[nodiscard]] std::span<const TransportFactory> transport_factories();

}  // namespace hccl::transport
