// SPDX-License-Identifier: Apache-2.0
// Every message's parser. The first byte says which; what is accepted survives being encoded.
#include "bootstrap/messages.h"
#include "fuzz.h"

namespace {

using namespace hccl::bootstrap;
using hccl::Bytes;
namespace fuzz = hccl::fuzz;

template <class Parse, class Encode>
void try_message(std::span<const std::byte> bytes, Parse parse, Encode encode) {
  const auto message = parse(bytes);
  fuzz::accepted = message.has_value();
  if (!message) return;
  const Bytes first = encode(*message);
  const auto again = parse(std::span<const std::byte>(first));
  fuzz::check(again.has_value(), "what was accepted is accepted again");
  fuzz::check(encode(*again) == first, "a message survives encoding");
}

void try_all(std::uint8_t which, std::span<const std::byte> bytes) {
  const auto plain = [](const auto& message) { return serialize(message); };
  switch (which % 12) {
    case 0:
      return try_message(bytes, parse<Opening>, plain);
    case 1:
      return try_message(bytes, parse<Hello>, plain);
    case 2:
      return try_message(bytes, parse<Welcome>, plain);
    case 3:
      return try_message(bytes, parse<Failure>, plain);
    case 4:
      return try_message(bytes, parse<GaveUp>, plain);
    case 5:
      return try_message(bytes, parse<Table>, plain);
    case 6:
      return try_message(bytes, parse<ContributionMessage>, plain);
    case 7:
      return try_message(bytes, parse<EntryMessage>, plain);
    case 8:
      return try_message(bytes, parse<Announcements>, plain);
    case 9:
      return try_message(bytes, parse<Waiting>, plain);
    case 11:
      return try_message(bytes, parse<Refusal>, plain);
    default:
      return try_message(bytes, parse<RankMessage>, plain);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = fuzz::bytes_of(data + 1, size - 1);
  try_all(*data, bytes);
  FrameSeal seal(FrameSeal::Role::rank, fuzz::fixed_key(), {}, {});
  Frame frame{FrameType::hello, {bytes.begin(), bytes.end()}, {}};
  fuzz::check(!seal.open(frame), "nobody guesses a code");
  static_cast<void>(may_become_hello(bytes));
  return 0;
}
