// SPDX-License-Identifier: Apache-2.0
// Implements both sides of the handshake without a socket.
#include "transport/handshake.h"

#include "base/sha256.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace hccl::transport {
namespace {

constexpr std::uint32_t kMagic = 0x54434348;  // "HCCT"
constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kHelloSize = 8 + sizeof(Secret) + 8 + 16;
constexpr std::size_t kChallengeSize = sizeof(Secret) + sizeof(Digest);
constexpr std::size_t kResponseSize = sizeof(Digest);
constexpr std::size_t kVerdictSize = 1;

Digest prove(std::string_view who, const Secret& secret, std::span<const std::byte> hello,
             std::span<const std::byte> nonce) {
  const std::array<std::span<const std::byte>, 3> parts{std::as_bytes(std::span(who)), hello,
                                                        nonce};
  return hmac(secret, parts);
}

constexpr std::string_view kAcceptor = "hccl transport acceptor";
constexpr std::string_view kConnector = "hccl transport connector";

// Returns the bytes with which every hello begins.
Bytes preamble() {
  WireWriter writer;
  writer.put_u32(kMagic);
  writer.put_u32(kFormat);
  return writer.take();
}

}  // namespace

StreamKey key_between(const Membership& own, int peer, ConnectionId connection) {
  if (peer < 0 || peer >= own.size || peer == own.rank) {
    throw Error(hcclInternalError,
                text("rank ", own.rank, " of ", own.size, " opens a stream to rank ", peer,
                     "; report this as a bug in hccl"));
  }
  return {std::min(own.rank, peer), std::max(own.rank, peer), connection};
}

void Handshake::receive(std::span<const std::byte> bytes) {
  bytes = bytes.first(std::min(bytes.size(), wanted()));
  received_.insert(received_.end(), bytes.begin(), bytes.end());
}

void Handshake::expect(std::size_t count) {
  received_.clear();
  expected_ = count;
}

void Handshake::expect_nothing(State state) {
  expect(0);
  state_ = state;
}

void Handshake::refuse(const std::string& why) {
  expect_nothing(State::refused);
  why_ = why;
}

ConnectorHandshake::ConnectorHandshake(const Membership& own, const StreamKey& key)
    : Handshake(kChallengeSize), secret_(own.secret), hello_(preamble()) {
  WireWriter writer;
  writer.put_bytes(hello_);
  writer.put_bytes(random_secret());
  writer.put_u64(own.communicator);
  writer.put_i32(key.from);
  writer.put_i32(key.to);
  writer.put_u32(key.connection.lane);
  writer.put_u32(key.connection.number);
  hello_ = writer.take();
}

Bytes ConnectorHandshake::take(std::span<const std::byte> bytes) {
  receive(bytes);
  if (state() != State::in_progress || !is_whole()) return {};
  if (challenged_) {
    const auto verdict = static_cast<Verdict>(received()[0]);
    if (verdict == Verdict::accepted) {
      finish();
    } else {
      refuse(verdict == Verdict::claimed ? "already has a connection for this stream"
                                         : "does not answer with this version's handshake");
    }
    return {};
  }
  const auto nonce = received().first(sizeof(Secret));
  if (!equal_in_constant_time(received().subspan(sizeof(Secret)),
                              prove(kAcceptor, secret_, hello_, nonce))) {
    refuse("does not know the communicator's secret");
    return {};
  }
  const Digest response = prove(kConnector, secret_, hello_, nonce);
  challenged_ = true;
  expect(kVerdictSize);
  return {response.begin(), response.end()};
}

AcceptorHandshake::AcceptorHandshake(const Membership& own) : Handshake(kHelloSize), own_(own) {}

Bytes AcceptorHandshake::take(std::span<const std::byte> bytes) {
  receive(bytes);
  if (state() != State::in_progress) return {};
  if (hello_.empty()) return answer_hello();
  if (!is_whole()) return {};
  if (!equal_in_constant_time(received(), prove(kConnector, own_.secret, hello_, nonce_))) {
    refuse("does not know the communicator's secret");
  } else {
    finish();
  }
  return {};
}

// Checks the preamble as soon as one byte has arrived, so that a foreign program is rejected
// immediately.
Bytes AcceptorHandshake::answer_hello() {
  const Bytes start = preamble();
  const std::size_t known = std::min(start.size(), received().size());
  if (!std::ranges::equal(received().first(known), std::span(start).first(known))) {
    refuse(
        "did not send this version's handshake; if it is a rank, install the same version of hccl "
        "on its host");
    return {};
  }
  if (!is_whole()) return {};
  hello_.assign(received().begin(), received().end());
  WireReader reader(std::span<const std::byte>(hello_).subspan(start.size() + sizeof(Secret)));
  const std::uint64_t communicator = reader.u64();
  key_.from = reader.i32();
  key_.to = reader.i32();
  key_.connection.lane = reader.u32();
  key_.connection.number = reader.u32();
  if (communicator != own_.communicator) {
    refuse("asked for a stream of another communicator");
    return {};
  }
  if (!is_plausible()) {
    refuse(text("asked for a stream from rank ", key_.from, " to rank ", key_.to,
                ", but this is rank ", own_.rank, " of ", own_.size));
    return {};
  }
  nonce_ = random_secret();
  const Digest proof = prove(kAcceptor, own_.secret, hello_, nonce_);
  WireWriter challenge;
  challenge.put_bytes(nonce_);
  challenge.put_bytes(proof);
  expect(kResponseSize);
  return challenge.take();
}

bool AcceptorHandshake::is_plausible() const {
  return key_.to == own_.rank && key_.from >= 0 && key_.from < key_.to && key_.to < own_.size;
}

Bytes AcceptorHandshake::encode(Verdict verdict) { return {static_cast<std::byte>(verdict)}; }

}  // namespace hccl::transport
