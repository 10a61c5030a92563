// SPDX-License-Identifier: Apache-2.0
// How a stream is protected after its handshake.
#pragma once

#include "base/protection.h"
#include "base/secret_bytes.h"

#include <functional>

namespace hccl::transport {

// The keys of one end. The other end has the same keys, swapped.
struct StreamKeys {
  SecretBytes sending;
  SecretBytes receiving;
};

// Returns the least protection that this rank demands for a stream over the connected socket.
using LeastProtection = std::function<Protection(int socket)>;

struct ProtectedStream {
  Protection protection = Protection::off;
  StreamKeys keys;  // empty if the stream is not protected
};

}  // namespace hccl::transport
