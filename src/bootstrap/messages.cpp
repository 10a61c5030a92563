// SPDX-License-Identifier: Apache-2.0
// Parses opening messages, the first messages of connections. If the peer has a different protocol
// version, reads only the version, because the other fields may differ too.
#include "bootstrap/messages.h"

namespace hccl::bootstrap {

template <>
std::optional<Opening> parse(std::span<const std::byte> bytes) {
  WireReader start(bytes);
  Opening message;
  message.version = start.u32();
  if (start.ok() && message.version != kProtocolVersion) return message;
  FieldReader reader(bytes);
  reader(message);
  if (!reader.complete()) return std::nullopt;
  return message;
}

}  // namespace hccl::bootstrap
