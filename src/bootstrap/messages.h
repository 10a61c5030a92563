// SPDX-License-Identifier: Apache-2.0
// The messages of the rendezvous, of the exchange on a node and of control links: their structs,
// fields and bounds.
#pragma once

#include "base/address.h"
#include "base/secret.h"
#include "base/secret_bytes.h"
#include "base/text.h"
#include "bootstrap/message_fields.h"
#include "bootstrap/process_identity.h"
#include "bootstrap/rank_table.h"
#include "bootstrap/wait_for_graph.h"
#include "bootstrap/wire.h"

#include <hccl_types.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace hccl::bootstrap {

inline constexpr std::uint32_t kProtocolVersion = 5;
inline constexpr std::size_t kSecretSize = 16;  // of a communicator, in bytes
inline constexpr std::size_t kMostBlob = std::size_t{1} << 20;

using SocketName = Secret;  // 128 random bits that name an abstract unix socket

// The first message of a rank. Over TCP, `here` and `there` are the addresses of the rank's and the
// server's end of the connection as the rank's kernel reports them. They differ from what the
// server's kernel reports if a device on the path translates addresses. Over a unix socket,
// `secret_check` is JoinKey::check().
struct Hello {
  std::uint32_t version = kProtocolVersion;
  int rank = -1;
  int size = 0;
  ProcessIdentity process{};
  SocketName node_socket{};
  Address here{};
  Address there{};
  std::uint16_t secret_check = 0;
};

struct Welcome {
  ProcessIdentity server;
  int server_rank = -1;  // the rank in the server's process, or -1 if none has joined yet
};

// The reason why the server rejects a rank. It is a number, not a text, so that a rank reports a
// refusal by an unauthenticated server in its own words.
struct Refusal {
  enum Reason : std::uint8_t {
    other_version = 1,  // the hello has a different protocol version
    other_user,         // the rank is on the server's machine; its user differs or was not found
    other_secret,       // the rank is on the server's machine, but has a different HCCL_SECRET
  };
  Reason reason = other_version;

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// An error that ranks throw as Error(code, text). Verdicts and reports of missing ranks also use
// this struct.
struct Failure {
  hcclResult_t code = hcclInternalError;
  std::string text;
};

// The reported cause if bytes of a TLS session do not authenticate.
inline constexpr const char* kForgedRecord =
    "a TLS record on its connection was changed in transit";
// Returns kForgedRecord and the remedy.
[[nodiscard]] inline std::string forged_record_text() {
  return text(kForgedRecord,
              "; find the program or device that rewrites traffic between the hosts, then start "
              "all ranks again");
}

struct GaveUp {
  std::uint32_t seconds = 0;
};

struct TableEntry {
  ProcessIdentity process;
  SocketName node_socket{};
};

struct Table {
  SecretBytes secret = SecretBytes(kSecretSize);  // of the communicator
  std::vector<TableEntry> ranks{};
  bool is_private = false;  // CommunicatorSecret::is_private; not serialised
};

struct ContributionMessage {
  SecretBytes secret = SecretBytes(kSecretSize);  // of the communicator
  int rank = -1;
  bool has_memory = false;
  Bytes blob;
};

struct EntryMessage {
  int rank = -1;
  bool has_memory = false;
  bool has_process = false;
  Bytes blob;
};

// Names one rank: the rank in the server's process, or a rank that has departed.
struct RankMessage {
  int rank = -1;
};

struct Announcements {
  std::vector<Bytes> by_rank;
};

inline constexpr int kMostPid = std::numeric_limits<int>::max();
inline constexpr std::size_t kLongestHost = 256;
inline constexpr std::size_t kLongestNodeIdentity = 512;
inline constexpr std::size_t kLongestFailure = 4096;
inline constexpr std::size_t kLongestCall = 1024;
inline constexpr std::size_t kMostAwaited = 64;  // a longer list is truncated

// The fields of each message, in the order of serialisation.
template <class Type, class Message>
concept Like = std::same_as<std::remove_const_t<Type>, Message>;

void fields(Like<ProcessIdentity> auto& m, auto& io) {
  io(bounded(m.pid, 1, kMostPid), m.pid_namespace, limited(m.host, kLongestHost),
     limited(m.node, kLongestNodeIdentity));
}
void fields(Like<Hello> auto& m, auto& io) {
  io(m.version, bounded(m.rank, 0, kMostRanks - 1), bounded(m.size, 1, kMostRanks), m.process,
     m.node_socket, m.here, m.there, m.secret_check);
}
void fields(Like<Welcome> auto& m, auto& io) {
  io(m.server, bounded(m.server_rank, -1, kMostRanks - 1));
}
void fields(Like<Refusal> auto& m, auto& io) {
  io(bounded(m.reason, Refusal::other_version, Refusal::other_secret));
}
void fields(Like<Failure> auto& m, auto& io) {
  io(bounded(m.code, hcclNoDeviceFound, hcclPortDown), limited(m.text, kLongestFailure));
}
void fields(Like<GaveUp> auto& m, auto& io) { io(m.seconds); }
void fields(Like<Waiting> auto& m, auto& io) {
  io(m.done, limited(m.position, kLongestCall), limited(m.call, kLongestCall),
     limited(m.algorithm, kLongestCall), limited(m.blocks, kLongestCall),
     counted<std::uint16_t>(m.awaited, kMostAwaited));
}
void fields(Like<TableEntry> auto& m, auto& io) { io(m.process, m.node_socket); }
void fields(Like<Table> auto& m, auto& io) {
  io(m.secret, counted<std::uint32_t>(m.ranks, kMostRanks));
}
void fields(Like<ContributionMessage> auto& m, auto& io) {
  io(m.secret, bounded(m.rank, 0, kMostRanks - 1), m.has_memory, remainder(m.blob));
}
void fields(Like<EntryMessage> auto& m, auto& io) {
  io(bounded(m.rank, 0, kMostRanks - 1), m.has_memory, m.has_process, remainder(m.blob));
}
void fields(Like<Announcements> auto& m, auto& io) {
  io(counted<std::uint32_t>(m.by_rank, kMostRanks, kMostAnnounced));
}
void fields(Like<RankMessage> auto& m, auto& io) { io(bounded(m.rank, 0, kMostRanks - 1)); }

template <class Message>
[[nodiscard]] Bytes serialize(const Message& message) {
  FieldWriter writer;
  writer(message);
  return writer.take();
}

// Returns the message, or nothing if a field is missing or out of bounds, or bytes are left over.
template <class Message>
[[nodiscard]] std::optional<Message> parse(std::span<const std::byte> bytes) {
  FieldReader reader(bytes);
  Message message;
  reader(message);
  if (!reader.complete()) return std::nullopt;
  return message;
}
// Parses a hello. Reads only the protocol version unless it is kProtocolVersion.
template <>
[[nodiscard]] std::optional<Hello> parse(std::span<const std::byte> bytes);

}  // namespace hccl::bootstrap
