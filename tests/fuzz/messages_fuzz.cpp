// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parsers of all messages. The first byte selects the parser. An accepted message must
// survive a round trip through the encoder.
#include "bootstrap/messages.h"
#include "crypto/tls_session.h"
#include "fuzz.h"

namespace {

using namespace hccl::bootstrap;
using hccl::Bytes;
namespace fuzz = hccl::fuzz;

template <class Message>
void try_message(std::span<const std::byte> bytes) {
  const auto message = parse<Message>(bytes);
  fuzz::accepted = message.has_value();
  if (!message) return;
  const Bytes first = serialize(*message);
  const auto again = parse<Message>(first);
  fuzz::check(again.has_value(), "an accepted message is accepted again");
  fuzz::check(serialize(*again) == first, "a message survives a round trip");
}

template <class... Messages>
void try_one_of(std::uint8_t which, std::span<const std::byte> bytes) {
  std::size_t at = 0;
  ((at++ == which % sizeof...(Messages) ? try_message<Messages>(bytes) : void()), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = fuzz::bytes_of(data + 1, size - 1);
  try_one_of<Hello, Welcome, Failure, GaveUp, Table, ContributionMessage, EntryMessage,
             Announcements, Waiting, RankMessage, Refusal>(*data, bytes);
  static_cast<void>(hccl::crypto::may_become_tls_record(bytes));
  return 0;
}
