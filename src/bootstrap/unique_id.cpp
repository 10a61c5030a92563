// SPDX-License-Identifier: Apache-2.0
// Layout: magic(8) version(2) total(2) kind(1) addresses(1) reserved(2) secret(16), then for each
// address v6(1) reserved(1) port(2) scope(4) bytes(16). The last 8 bytes are the first 8 bytes of
// the SHA-256 digest of everything before them, so that a truncated copy is detected.
#include "bootstrap/unique_id.h"

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "bootstrap/wire.h"

#include <algorithm>
#include <optional>

namespace hccl::bootstrap {
namespace {

constexpr std::uint64_t kMagic = 0x0a4449554c434348;  // "HCCLUID\n"
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kHeaderSize = 32;
constexpr std::size_t kAddressSize = 24;
constexpr std::size_t kChecksumSize = 8;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(hcclInvalidArgument,
              text("the unique id ", why, "; pass the id that hcclGetUniqueId filled, all ",
                   sizeof(hcclUniqueId), " bytes or the first `length` bytes of `internal`"));
}

}  // namespace

std::string UniqueId::key() const {
  std::string key;
  if (kind == Kind::with_secret) {
    for (const std::byte byte : secret) key.push_back(static_cast<char>(byte));
    return key;
  }
  for (const Address& address : addresses) key += address.to_text() + ' ';
  return key;
}

hcclUniqueId encode(const UniqueId& id) {
  const std::size_t body = kHeaderSize + id.addresses.size() * kAddressSize;
  WireWriter writer;
  writer.put_u64(kMagic);
  writer.put_u16(kVersion);
  writer.put_u16(static_cast<std::uint16_t>(body + kChecksumSize));
  writer.put_u8(static_cast<std::uint8_t>(id.kind));
  writer.put_u8(static_cast<std::uint8_t>(id.addresses.size()));
  writer.put_u16(0);
  writer.put_bytes(id.secret);
  for (const Address& address : id.addresses) put_address(writer, address);
  const Digest checksum = sha256(writer.bytes());
  writer.put_bytes(std::span(checksum).first<kChecksumSize>());

  hcclUniqueId result{};
  result.length = writer.bytes().size();
  std::ranges::transform(writer.bytes(), std::begin(result.internal),
                         [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  return result;
}

UniqueId decode(const hcclUniqueId& id) {
  if (is_empty(id)) refuse("is empty: it was never filled in");
  if (id.length > sizeof(id.internal)) refuse(text("has an impossible length of ", id.length));
  const auto all = std::as_bytes(std::span(id.internal)).first(id.length);
  WireReader reader(all);
  if (reader.u64() != kMagic || !reader.ok()) refuse("was not made by this library");
  const std::uint16_t version = reader.u16();
  if (version != kVersion)
    refuse(text("has format version ", version, ", but this library reads version ", kVersion));
  const std::size_t total = reader.u16();
  const std::uint8_t kind = reader.u8();
  const std::size_t count = reader.u8();
  const std::uint16_t reserved = reader.u16();
  UniqueId result;
  result.secret = reader.array<16>();
  if (!reader.ok() || total > all.size()) refuse(text("is truncated: its length is ", id.length));
  if (kind < 1 || kind > 2 || reserved != 0 || count < 1 || count > kMostAddresses ||
      total != kHeaderSize + count * kAddressSize + kChecksumSize) {
    refuse("is damaged");
  }
  const Digest checksum = sha256(all.first(total - kChecksumSize));
  if (!std::ranges::equal(all.subspan(total - kChecksumSize, kChecksumSize),
                          std::span(checksum).first<kChecksumSize>())) {
    refuse("is damaged");
  }
  result.kind = static_cast<UniqueId::Kind>(kind);
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<Address> address = read_address(reader);
    if (!address || address->port == 0) refuse("is damaged");
    result.addresses.push_back(*address);
  }
  return result;
}

bool is_empty(const hcclUniqueId& id) {
  return id.length == 0 ||
         std::ranges::all_of(id.internal, [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace hccl::bootstrap
