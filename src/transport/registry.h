// SPDX-License-Identifier: Apache-2.0
// The list of built-in transports. transports/registry.cpp defines it, so that nothing in src
// includes a transport.
#pragma once

#include "transport/transport.h"

#include <memory>
#include <span>
#include <string>

namespace hccl::transport {

// A transport, or the reason why this rank cannot use that transport, as a clause.
struct MakeResult {
  std::unique_ptr<Transport> transport;
  std::string why_not;
};

struct TransportFactory {
  const char* name;
  // Creates the transport. Throws Error(hcclInvalidArgument) for an unusable setting, and
  // Error(hcclSystemError) if a resource that the transport needs exists but cannot be used.
  MakeResult (*make)(const Settings& settings);
};

// Returns all factories, the preferred transport first.
[[nodiscard]] std::span<const TransportFactory> transport_factories();

}  // namespace hccl::transport
