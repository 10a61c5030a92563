// SPDX-License-Identifier: Apache-2.0
// The messages of the rendezvous and of the node exchange: one struct each, its bytes, and its
// validation.
#pragma once

#include "base/sha256.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/wire.h"

#include <hccl_types.h>

#include <optional>
#include <string>
#include <vector>

namespace hccl::bootstrap {

constexpr std::uint32_t kProtocolVersion = 1;
constexpr int kMostRanks = 4096;
constexpr std::size_t kMostBlob = std::size_t{1} << 20;

constexpr Secret kNoNonce{};  // of an early hello, sent before the server's is known

using SocketName = Secret;  // of an abstract unix socket: 128 random bits

// A process as others see it.
struct ProcessIdentity {
  int pid = 0;
  std::uint64_t pid_namespace = 0;
  std::string host;
  std::string box;

  [[nodiscard]] static ProcessIdentity mine();
  // Whether pid means the same process here.
  [[nodiscard]] bool shares_pids_with(const ProcessIdentity& other) const;
  [[nodiscard]] bool same_process(const ProcessIdentity& other) const;

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// "rank 3 (pid 4242, host a)"
[[nodiscard]] std::string describe(int rank, const ProcessIdentity& process);

struct Greeting {
  std::uint32_t version = kProtocolVersion;
  Secret nonce{};
};

struct Hello {
  Secret nonce{};
  int rank = -1;
  int size = 0;
  ProcessIdentity process;
  SocketName node_socket{};
};

struct Welcome {
  ProcessIdentity server;
  int server_rank = -1;  // the rank of the server's process, once known
};

// Why a rendezvous ended, or why a rank may not join: becomes Error(code, text) on the ranks told.
struct Failure {
  hcclResult_t code = hcclInternalError;
  std::string text;
};

struct GaveUp {
  std::uint32_t seconds = 0;
};

struct TableEntry {
  ProcessIdentity process;
  SocketName node_socket{};
};

struct Table {
  Secret secret{};
  std::vector<TableEntry> ranks;
};

struct ContributionMessage {
  Secret secret{};
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

// A hello or welcome ends with a proof: HMAC(key, who says it, the other side's nonce, the rest).
// `parse_` checks form and ranges, `proves` the proof.
[[nodiscard]] Bytes serialize(const Greeting& message);
[[nodiscard]] Bytes serialize(const Hello& message, std::span<const std::byte> key,
                              const Secret& server_nonce);
[[nodiscard]] Bytes serialize(const Welcome& message, std::span<const std::byte> key,
                              const Secret& rank_nonce);
[[nodiscard]] Bytes serialize(const Failure& message);
[[nodiscard]] Bytes serialize(const GaveUp& message);
[[nodiscard]] Bytes serialize(const Waiting& message);
[[nodiscard]] Bytes serialize(const Table& message);
[[nodiscard]] Bytes serialize(const ContributionMessage& message);
[[nodiscard]] Bytes serialize(const EntryMessage& message);
[[nodiscard]] Bytes serialize(const std::vector<Bytes>& announcements);
[[nodiscard]] Bytes serialize_rank(int rank);

[[nodiscard]] std::optional<Greeting> parse_greeting(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Hello> parse_hello(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Welcome> parse_welcome(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Failure> parse_failure(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<GaveUp> parse_gave_up(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Waiting> parse_waiting(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Table> parse_table(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<ContributionMessage> parse_contribution(
    std::span<const std::byte> bytes);
[[nodiscard]] std::optional<EntryMessage> parse_entry(std::span<const std::byte> bytes);
// By rank, each of at most kMostAnnounced bytes.
[[nodiscard]] std::optional<std::vector<Bytes>> parse_announcements(
    std::span<const std::byte> bytes);
[[nodiscard]] std::optional<int> parse_rank(std::span<const std::byte> bytes);

[[nodiscard]] bool hello_proves(std::span<const std::byte> hello, std::span<const std::byte> key,
                                const Secret& server_nonce);
[[nodiscard]] bool welcome_proves(std::span<const std::byte> welcome,
                                  std::span<const std::byte> key, const Secret& rank_nonce);

}  // namespace hccl::bootstrap
