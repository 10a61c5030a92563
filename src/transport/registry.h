// SPDX-License-Identifier: Apache-2.0
// The transports that are built in. Defined in transports/registry.cpp: nothing in src includes
// them.
#pragma once

#include "transport/transport.h"

#include <memory>
#include <span>
#include <string>

namespace hccl::transport {

// A transport, or why this machine has nothing for it: a clause.
struct Made {
  std::unique_ptr<Transport> transport;
  std::string why_not;
};

struct TransportFactory {
  const char* name;
  // Throws Error where there is something for it that cannot be used.
  Made (*make)(const Settings& settings);
};

// Best first.
[[nodiscard]] std::span<const TransportFactory> transport_factories();

}  // namespace hccl::transport
