// SPDX-License-Identifier: Apache-2.0
// Bytes of the messages. Parsers return nothing unless every field is present and within its range.
#include "bootstrap/messages.h"

#include "base/peer_process.h"
#include "base/process.h"
#include "base/text.h"

#include <unistd.h>

namespace hccl::bootstrap {
namespace {

constexpr std::size_t kLongestHost = 256;
constexpr std::size_t kLongestBox = 512;
constexpr std::size_t kLongestFailure = 4096;
constexpr std::size_t kLongestCall = 1024;
constexpr std::size_t kMostAwaited = 64;  // of a thousand the first say enough

void put_process(WireWriter& writer, const ProcessIdentity& process) {
  writer.put_i32(process.pid);
  writer.put_u64(process.pid_namespace);
  writer.put_text(process.host.substr(0, kLongestHost));
  writer.put_text(process.box.substr(0, kLongestBox));
}

ProcessIdentity read_process(WireReader& reader) {
  ProcessIdentity process;
  process.pid = reader.i32();
  process.pid_namespace = reader.u64();
  process.host = reader.text(kLongestHost);
  process.box = reader.text(kLongestBox);
  return process;
}

bool valid_rank(int rank) { return rank >= 0 && rank < kMostRanks; }

bool valid_code(int code) { return code > hcclSuccess && code <= hcclPortDown; }

}  // namespace

ProcessIdentity ProcessIdentity::mine() {
  return {getpid(), own_pid_namespace(), host_name(), box_identity()};
}

bool ProcessIdentity::shares_pids_with(const ProcessIdentity& other) const {
  return box == other.box && pid_namespace == other.pid_namespace && pid_namespace != 0;
}

bool ProcessIdentity::same_process(const ProcessIdentity& other) const {
  return pid == other.pid && shares_pids_with(other);
}

std::string describe(int rank, const ProcessIdentity& process) {
  return text("rank ", rank, " (pid ", process.pid, ", host ", process.host, ')');
}

Bytes serialize(const Opening& message) {
  WireWriter writer;
  writer.put_u32(message.version);
  writer.put_bytes(message.nonce);
  put_address(writer, message.here);
  put_address(writer, message.there);
  return writer.take();
}

Bytes serialize(const Hello& message) {
  WireWriter writer;
  writer.put_i32(message.rank);
  writer.put_i32(message.size);
  put_process(writer, message.process);
  writer.put_bytes(message.node_socket);
  return writer.take();
}

Bytes serialize(const Welcome& message) {
  WireWriter writer;
  put_process(writer, message.server);
  writer.put_i32(message.server_rank);
  return writer.take();
}

Bytes serialize(Refusal message) { return {static_cast<std::byte>(message)}; }

Bytes serialize(const Failure& message) {
  WireWriter writer;
  writer.put_i32(message.code);
  writer.put_text(message.text);
  return writer.take();
}

Bytes serialize(const Waiting& message) {
  const std::size_t count = std::min(message.awaited.size(), kMostAwaited);
  WireWriter writer;
  writer.put_u8(message.done ? 1 : 0);
  writer.put_text(message.position);
  writer.put_text(message.call);
  writer.put_text(message.algorithm);
  writer.put_text(message.blocks);
  writer.put_u16(static_cast<std::uint16_t>(count));
  for (std::size_t i = 0; i < count; ++i) writer.put_i32(message.awaited[i]);
  return writer.take();
}

Bytes serialize(const GaveUp& message) {
  WireWriter writer;
  writer.put_u32(message.seconds);
  return writer.take();
}

Bytes serialize(const Table& message) {
  WireWriter writer;
  writer.put_bytes(message.salt);
  writer.put_u32(static_cast<std::uint32_t>(message.ranks.size()));
  for (const TableEntry& entry : message.ranks) {
    put_process(writer, entry.process);
    writer.put_bytes(entry.node_socket);
  }
  return writer.take();
}

Bytes serialize(const ContributionMessage& message) {
  WireWriter writer;
  writer.put_bytes(message.secret);
  writer.put_i32(message.rank);
  writer.put_u8(message.has_memory ? 1 : 0);
  writer.put_bytes(message.blob);
  return writer.take();
}

Bytes serialize(const EntryMessage& message) {
  WireWriter writer;
  writer.put_i32(message.rank);
  writer.put_u8(message.has_memory ? 1 : 0);
  writer.put_u8(message.has_process ? 1 : 0);
  writer.put_bytes(message.blob);
  return writer.take();
}

Bytes serialize(const std::vector<Bytes>& announcements) {
  WireWriter writer;
  writer.put_u32(static_cast<std::uint32_t>(announcements.size()));
  for (const Bytes& announced : announcements) {
    writer.put_u16(static_cast<std::uint16_t>(announced.size()));
    writer.put_bytes(announced);
  }
  return writer.take();
}

Bytes serialize_rank(int rank) {
  WireWriter writer;
  writer.put_i32(rank);
  return writer.take();
}

std::optional<Opening> parse_opening(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  Opening message;
  message.version = reader.u32();
  if (reader.ok() && message.version != kProtocolVersion) return message;
  message.nonce = reader.array<sizeof(Secret)>();
  const auto here = read_address(reader);
  const auto there = read_address(reader);
  if (!reader.complete() || !here || !there) return std::nullopt;
  message.here = *here;
  message.there = *there;
  return message;
}

std::optional<Hello> parse_hello(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  Hello message;
  message.rank = reader.i32();
  message.size = reader.i32();
  message.process = read_process(reader);
  message.node_socket = reader.array<sizeof(SocketName)>();
  if (!reader.complete() || message.process.pid <= 0) return std::nullopt;
  if (message.size < 1 || message.size > kMostRanks || !valid_rank(message.rank)) {
    return std::nullopt;
  }
  return message;
}

std::optional<Welcome> parse_welcome(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  Welcome message;
  message.server = read_process(reader);
  message.server_rank = reader.i32();
  if (!reader.complete() || message.server.pid <= 0) return std::nullopt;
  if (message.server_rank != -1 && !valid_rank(message.server_rank)) return std::nullopt;
  return message;
}

std::optional<Refusal> parse_refusal(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  const auto message = static_cast<Refusal>(reader.u8());
  if (!reader.complete() || message < Refusal::other_version || message > Refusal::other_user)
    return std::nullopt;
  return message;
}

std::optional<Failure> parse_failure(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  const int code = reader.i32();
  std::string explanation = reader.text(kLongestFailure);
  if (!reader.complete() || !valid_code(code)) return std::nullopt;
  return Failure{static_cast<hcclResult_t>(code), std::move(explanation)};
}

std::optional<Waiting> parse_waiting(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  Waiting waiting;
  waiting.done = reader.u8() != 0;
  waiting.position = reader.text(kLongestCall);
  waiting.call = reader.text(kLongestCall);
  waiting.algorithm = reader.text(kLongestCall);
  waiting.blocks = reader.text(kLongestCall);
  const std::size_t count = reader.u16();
  if (!reader.ok() || count > kMostAwaited) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) waiting.awaited.push_back(reader.i32());
  if (!reader.complete() || !std::ranges::all_of(waiting.awaited, valid_rank)) return std::nullopt;
  return waiting;
}

std::optional<GaveUp> parse_gave_up(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  const GaveUp message{reader.u32()};
  if (!reader.complete()) return std::nullopt;
  return message;
}

std::optional<Table> parse_table(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  Table message;
  message.salt = reader.array<sizeof(Secret)>();
  const std::uint32_t count = reader.u32();
  if (!reader.ok() || count > static_cast<std::uint32_t>(kMostRanks)) return std::nullopt;
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    TableEntry entry;
    entry.process = read_process(reader);
    entry.node_socket = reader.array<sizeof(SocketName)>();
    message.ranks.push_back(std::move(entry));
  }
  if (!reader.complete()) return std::nullopt;
  return message;
}

std::optional<ContributionMessage> parse_contribution(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  ContributionMessage message;
  message.secret = reader.array<sizeof(Secret)>();
  message.rank = reader.i32();
  message.has_memory = reader.u8() != 0;
  message.blob = reader.remainder();
  if (!reader.complete() || !valid_rank(message.rank)) return std::nullopt;
  return message;
}

std::optional<EntryMessage> parse_entry(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  EntryMessage message;
  message.rank = reader.i32();
  message.has_memory = reader.u8() != 0;
  message.has_process = reader.u8() != 0;
  message.blob = reader.remainder();
  if (!reader.complete() || !valid_rank(message.rank)) return std::nullopt;
  return message;
}

std::optional<std::vector<Bytes>> parse_announcements(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  const std::uint32_t count = reader.u32();
  if (!reader.ok() || count > static_cast<std::uint32_t>(kMostRanks)) return std::nullopt;
  std::vector<Bytes> all;
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const std::size_t length = reader.u16();
    if (length > kMostAnnounced) return std::nullopt;
    all.push_back(reader.bytes(length));
  }
  if (!reader.complete()) return std::nullopt;
  return all;
}

std::optional<int> parse_rank(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  const int rank = reader.i32();
  if (!reader.complete() || !valid_rank(rank)) return std::nullopt;
  return rank;
}

}  // namespace hccl::bootstrap
