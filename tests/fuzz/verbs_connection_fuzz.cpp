// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parsers for what a rank receives from other ranks before its queue pairs are
// connected: the published address, and the info sent over a connection. The first byte selects the
// parser.
#include "fuzz.h"
#include "verbs/qp_exchange.h"
#include "verbs/verbs_address.h"

#include <algorithm>

namespace {

using namespace hccl;

void try_address(std::span<const std::byte> bytes) {
  const auto address = verbs::parse_verbs_address(bytes);
  fuzz::accepted = address.has_value();
  if (!address) return;
  fuzz::check(std::ranges::equal(verbs::serialize(*address), bytes),
              "an address survives a round trip");
  fuzz::check(address->tcp_port != 0, "a server listens on the port");
  const Address listener = verbs::tcp_address(*address);
  fuzz::check(listener.port == address->tcp_port, "the port is that of the address");
  fuzz::check(!listener.to_text().empty(), "an address has a text");
  fuzz::check(verbs::why_unreachable(address->gid, address->gid).empty(),
              "within one network a rank reaches its own address");
}

void try_info(std::span<const std::byte> bytes) {
  const auto info = verbs::parse_qp_info(bytes);
  fuzz::accepted = info.has_value();
  if (!info) return;
  fuzz::check(bytes.size() == verbs::kQpInfoBytes, "the info has a fixed size");
  fuzz::check(std::ranges::equal(verbs::serialize(*info), bytes), "the info survives a round trip");
  fuzz::check(info->queue_pair < 1U << 24 && info->first_packet < 1U << 24,
              "numbers fit the packets");
  fuzz::check(info->mtu >= 256 && info->mtu <= 4096, "a port can have this MTU");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::either(data, size, try_address, try_info);
}
