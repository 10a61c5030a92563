// SPDX-License-Identifier: Apache-2.0
// What ranks over RDMA read from others before their queue pairs work: the published offer, and the
// facts that a connection brings. The first byte says which.
#include "fuzz.h"
#include "verbs/introduction.h"
#include "verbs/offer.h"

#include <algorithm>

namespace {

using namespace hccl;

void try_offer(std::span<const std::byte> bytes) {
  const auto offer = verbs::parse_offer(bytes);
  fuzz::accepted = offer.has_value();
  if (!offer) return;
  fuzz::check(std::ranges::equal(verbs::serialize(*offer), bytes), "an offer survives encoding");
  fuzz::check(offer->tcp_port != 0, "somebody listens at the port");
  const Address address = verbs::meeting_point(*offer);
  fuzz::check(address.port == offer->tcp_port, "the port is that of the offer");
  fuzz::check(!address.to_text().empty(), "an address has a text");
  fuzz::check(verbs::why_unreachable(offer->gid, offer->gid).empty(),
              "within one network a rank reaches its own address");
}

void try_facts(std::span<const std::byte> bytes) {
  const auto facts = verbs::parse_facts(bytes);
  fuzz::accepted = facts.has_value();
  if (!facts) return;
  fuzz::check(bytes.size() == verbs::kFactsBytes, "facts have one size");
  fuzz::check(std::ranges::equal(verbs::serialize(*facts), bytes), "facts survive encoding");
  fuzz::check(facts->queue_pair < 1U << 24 && facts->first_packet < 1U << 24,
              "numbers fit the packets");
  fuzz::check(facts->mtu >= 256 && facts->mtu <= 4096, "there is such a port");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepted = false;
  if (size == 0) return 0;
  const auto bytes = fuzz::bytes_of(data + 1, size - 1);
  if (*data % 2 == 0) {
    try_offer(bytes);
  } else {
    try_facts(bytes);
  }
  return 0;
}
