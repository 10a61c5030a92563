// SPDX-License-Identifier: Apache-2.0
// Implements both sides of the handshake without a socket.
#include "transport/handshake.h"

#include "base/error.h"
#include "base/text.h"
#include "crypto/keys.h"
#include "crypto/tls_session.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace hccl::transport {
namespace {

constexpr std::uint32_t kFormat = 2;
constexpr std::size_t kRequestSize = 4 + 8 + 16 + 1;
constexpr std::size_t kAnswerSize = 2;
constexpr std::size_t kRecordHeader = 5;
// The largest TLS record, without its header (RFC 8446, section 5.2).
constexpr std::size_t kMostRecord = (std::size_t{1} << 14) + 256;

constexpr const char* kForeign =
    "did not send this version's handshake; if it is a rank, install the same version of hccl on "
    "its host";

std::optional<Protection> read_protection(WireReader& reader) {
  const std::uint8_t value = reader.u8();
  if (value > static_cast<std::uint8_t>(Protection::full)) return std::nullopt;
  return static_cast<Protection>(value);
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

Handshake::Handshake(crypto::TlsRole role, const Membership& own, Protection protection)
    : role_(role), secret_(own.secret), protection_(protection) {}

crypto::TlsSession& Handshake::session() {
  if (!session_) {
    session_ = std::make_shared<crypto::TlsSession>(
        role_, crypto::derive_key(*secret_, "hccl-stream-handshake"));
  }
  return *session_;
}

std::size_t Handshake::wanted() const {
  if (state_ != State::in_progress) return 0;
  if (record_.size() < kRecordHeader) return kRecordHeader - record_.size();
  const std::size_t body =
      (std::to_integer<std::size_t>(record_[3]) << 8) + std::to_integer<std::size_t>(record_[4]);
  return kRecordHeader + body - record_.size();
}

Bytes Handshake::take(std::span<const std::byte> bytes) {
  bytes = bytes.first(std::min(bytes.size(), wanted()));
  record_.insert(record_.end(), bytes.begin(), bytes.end());
  has_heard_ = has_heard_ || !bytes.empty();
  if (state_ != State::in_progress) return {};
  if (!crypto::may_become_tls_record(record_) ||
      (record_.size() >= kRecordHeader && wanted() > kMostRecord)) {
    refuse(kForeign);
    return {};
  }
  if (record_.size() >= kRecordHeader && wanted() == 0) take_record();
  return take_output();
}

void Handshake::take_record() {
  using crypto::TlsState;
  const std::size_t before = plaintext_.size();
  session().receive(std::exchange(record_, {}), plaintext_);
  switch (session().state()) {
    case TlsState::handshake:
      return;
    case TlsState::established:
      if (plaintext_.size() > before) on_plaintext(plaintext_);
      return;
    case TlsState::not_tls:
      return refuse(kForeign);
    case TlsState::other_key:
      return refuse("does not know the communicator's secret");
    case TlsState::altered:
      return refuse("sent a handshake that was changed in transit");
    case TlsState::failed:
    case TlsState::closed:
      return refuse(text("ended the handshake: ", session().why()));
  }
}

Bytes Handshake::take_output() { return session_ ? session_->take_output() : Bytes{}; }

void Handshake::refuse(const std::string& why) {
  state_ = State::refused;
  why_ = why;
}

ProtectedStream Handshake::stream() const {
  if (protection_ == Protection::off) return {};
  SecretBytes of_connector = session_->export_key("hccl-stream-connector", crypto::kKeySize);
  SecretBytes of_acceptor = session_->export_key("hccl-stream-acceptor", crypto::kKeySize);
  if (role_ == crypto::TlsRole::server) std::swap(of_connector, of_acceptor);
  return {protection_, {std::move(of_connector), std::move(of_acceptor)}};
}

ConnectorHandshake::ConnectorHandshake(const Membership& own, const StreamKey& key,
                                       Protection protection)
    : Handshake(crypto::TlsRole::client, own, protection), hello_(session().take_output()) {
  WireWriter request;
  request.put_u32(kFormat);
  request.put_u64(own.communicator);
  request.put_i32(key.from);
  request.put_i32(key.to);
  request.put_u32(key.connection.lane);
  request.put_u32(key.connection.number);
  request.put_u8(static_cast<std::uint8_t>(protection));
  session().send(request.bytes());
}

void ConnectorHandshake::on_plaintext(std::span<const std::byte> plaintext) {
  if (plaintext.size() < kAnswerSize) return;
  WireReader reader(plaintext);
  const auto verdict = static_cast<Verdict>(reader.u8());
  const auto protection = read_protection(reader);
  if (!reader.complete() || !protection || *protection < this->protection()) {
    refuse("does not answer with this version's handshake");
  } else if (verdict == Verdict::accepted) {
    protect(*protection);
    finish();
  } else {
    refuse(verdict == Verdict::claimed ? "already has a connection for this stream"
                                       : "does not answer with this version's handshake");
  }
}

AcceptorHandshake::AcceptorHandshake(const Membership& own, Protection protection)
    : Handshake(crypto::TlsRole::server, own, protection), own_(own) {}

void AcceptorHandshake::on_plaintext(std::span<const std::byte> plaintext) {
  if (plaintext.size() < kRequestSize) return;
  WireReader reader(plaintext);
  const std::uint32_t format = reader.u32();
  const std::uint64_t communicator = reader.u64();
  key_.from = reader.i32();
  key_.to = reader.i32();
  key_.connection.lane = reader.u32();
  key_.connection.number = reader.u32();
  const auto protection = read_protection(reader);
  if (format != kFormat || !reader.complete() || !protection) return refuse(kForeign);
  if (communicator != own_.communicator)
    return refuse("asked for a stream of another communicator");
  if (!is_plausible()) {
    return refuse(text("asked for a stream from rank ", key_.from, " to rank ", key_.to,
                       ", but this is rank ", own_.rank, " of ", own_.size));
  }
  protect(std::max(*protection, this->protection()));
  finish();
}

bool AcceptorHandshake::is_plausible() const {
  return key_.to == own_.rank && key_.from >= 0 && key_.from < key_.to && key_.to < own_.size;
}

Bytes AcceptorHandshake::answer(Verdict verdict) {
  WireWriter answer;
  answer.put_u8(static_cast<std::uint8_t>(verdict));
  answer.put_u8(static_cast<std::uint8_t>(protection()));
  session().send(answer.bytes());
  return take_output();
}

}  // namespace hccl::transport
