// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parsers for what a connecting rank receives from other ranks: published addresses, and
// the acceptor's messages in a handshake. The first byte selects the parser.
#include "fuzz.h"
#include "tcp/addresses.h"
#include "transport/handshake.h"

#include <algorithm>

namespace {

using namespace hccl;

void try_offer(std::span<const std::byte> bytes) {
  const auto published = tcp::parse_tcp_addresses(bytes);
  fuzz::accepted = published.has_value();
  if (!published) return;
  fuzz::check(std::ranges::equal(tcp::serialize(*published), bytes),
              "addresses survive a round trip");
  fuzz::check(tcp::usable_addresses(*published, *published).size() == published->addresses.size(),
              "within one network every address is usable");
}

// Returns whether the bytes are an unencrypted TLS alert, which says why a session has failed.
bool is_alert(const Bytes& bytes) {
  constexpr std::byte kAlert{21};
  constexpr std::size_t kHeaderBytes = 5;
  return bytes.size() == kHeaderBytes + 2 && bytes.front() == kAlert;
}

void try_handshake(std::span<const std::byte> bytes) {
  transport::Membership own{
      .secret = std::make_shared<const SecretBytes>(16), .rank = 0, .size = 2};
  transport::ConnectorHandshake handshake(own, {0, 1, {}});
  while (!bytes.empty() && handshake.state() == transport::Handshake::State::in_progress) {
    const std::size_t count = std::min(bytes.size(), handshake.wanted());
    fuzz::check(count > 0, "a rank that still sends also still receives");
    const Bytes answer = handshake.take(bytes.first(count));
    fuzz::check(answer.empty() || is_alert(answer), "an unknown peer receives at most an alert");
    bytes = bytes.subspan(count);
  }
  fuzz::accepted = false;
  fuzz::check(handshake.state() != transport::Handshake::State::done,
              "no unknown peer is accepted");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::either(data, size, try_offer, try_handshake);
}
