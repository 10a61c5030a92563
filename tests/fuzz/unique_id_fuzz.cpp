// SPDX-License-Identifier: Apache-2.0
// Fuzzes the bytes of a unique id that a program may pass: truncated, damaged, or from another
// library.
#include "base/error.h"
#include "base/sha256.h"
#include "bootstrap/unique_id.h"
#include "fuzz.h"

#include <algorithm>
#include <cstring>

namespace {

using namespace hccl;
using namespace hccl::bootstrap;

constexpr std::size_t kLengthBytes = 2;
constexpr std::size_t kChecksumSize = 8;

hcclUniqueId id_of(std::span<const std::byte> input) {
  hcclUniqueId id{};
  WireReader reader(input);
  id.length = reader.u16();
  const auto content = input.subspan(std::min(kLengthBytes, input.size()));
  std::ranges::transform(content.first(std::min(content.size(), sizeof(id.internal))), id.internal,
                         [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  return id;
}

// Corrects the checksum. Otherwise, decode() would refuse almost every input for a wrong checksum.
void repair_checksum(hcclUniqueId& id) {
  if (id.length < kChecksumSize || id.length > sizeof(id.internal)) return;
  const std::size_t body = id.length - kChecksumSize;
  const Digest digest = sha256(std::as_bytes(std::span(id.internal)).first(body));
  std::memcpy(&id.internal[body], digest.data(), kChecksumSize);
}

bool try_decode(const hcclUniqueId& id) {
  try {
    const UniqueId decoded = decode(id);
    const UniqueId again = decode(encode(decoded));
    fuzz::check(again.kind == decoded.kind && again.secret == decoded.secret &&
                    again.addresses == decoded.addresses,
                "an id survives a round trip");
    fuzz::check(again.key() == decoded.key(), "equal ids have equal keys");
    fuzz::check(!decoded.addresses.empty(), "an id has an address");
    return true;
  } catch (const Error& error) {
    fuzz::check(error.code() == hcclInvalidArgument, "a bad id is an invalid argument");
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hcclUniqueId id = id_of(fuzz::bytes_of(data, size));
  fuzz::accepted = try_decode(id);
  repair_checksum(id);
  static_cast<void>(try_decode(id));
  return 0;
}
