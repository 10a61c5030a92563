// SPDX-License-Identifier: Apache-2.0
// Parses hellos, the first messages of ranks. If the rank has a different protocol version, reads
// only the version, because the other fields may differ too.
#include "bootstrap/messages.h"

namespace hccl::bootstrap {

template <>
std::optional<Hello> parse(std::span<const std::byte> bytes) {
  WireReader start(bytes);
  Hello message;
  message.version = start.u32();
  if (start.ok() && message.version != kProtocolVersion) return message;
  FieldReader reader(bytes);
  reader(message);
  if (!reader.complete()) return std::nullopt;
  return message;
}

}  // namespace hccl::bootstrap
