// SPDX-License-Identifier: Apache-2.0
// From an opening of another protocol version, only that version is read.
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
