// SPDX-License-Identifier: Apache-2.0
// The messages of the rendezvous and of the node exchange: one struct each, its bytes, and its
// validation.
#pragma once

#include "base/address.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/wire.h"

#include <hccl_types.h>

#include <optional>
#include <string>
#include <vector>

namespace hccl::bootstrap {

constexpr std::uint32_t kProtocolVersion = 2;
constexpr int kMostRanks = 4096;
constexpr std::size_t kMostBlob = std::size_t{1} << 20;

using SocketName = Secret;  // of an abstract unix socket: 128 random bits

// A process as others see it.
struct ProcessIdentity {
  int pid = 0;
  std::uint64_t pid_namespace = 0;
  std::string host;
  std::string box;

  [[nodiscard]] static ProcessIdentity mine();
  // Returns whether pid means the same process here.
  [[nodiscard]] bool shares_pids_with(const ProcessIdentity& other) const;
  [[nodiscard]] bool same_process(const ProcessIdentity& other) const;

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// "rank 3 (pid 4242, host a)"
[[nodiscard]] std::string describe(int rank, const ProcessIdentity& process);

// Both ends begin a connection with one: the rank's opening, the server's greeting. The addresses
// are those that the speaker's kernel knows; they differ between the ends where something between
// them translates addresses.
struct Opening {
  std::uint32_t version = kProtocolVersion;
  Secret nonce{};
  Address here;
  Address there;
};

struct Hello {
  int rank = -1;
  int size = 0;
  ProcessIdentity process;
  SocketName node_socket{};
};

struct Welcome {
  ProcessIdentity server;
  int server_rank = -1;  // the rank of the server's process, once known
};

// Why a server turns a connection away before it knows the rank. Only the reason travels: what
// nobody has authenticated is not repeated to people.
enum class Refusal : std::uint8_t {
  other_version = 1,  // the opening is of another protocol
  other_key,          // the hello's code is wrong
  other_user,         // the process is on the server's machine, and not known to be its user's
};

// Why a rendezvous ended, or why a rank may not join: becomes Error(code, text) on the ranks told.
struct Failure {
  hcclResult_t code = hcclInternalError;
  std::string text;
};

// Text about a connection that was authenticated before.
constexpr const char* kForgedFrame =
    "something between the hosts changed a frame of its connection; find what relays or rewrites "
    "their traffic, then start all ranks again";

struct GaveUp {
  std::uint32_t seconds = 0;
};

struct TableEntry {
  ProcessIdentity process;
  SocketName node_socket{};
};

struct Table {
  Secret salt{};
  std::vector<TableEntry> ranks;
  Secret secret{};  // communicator_secret(); does not travel
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

[[nodiscard]] Bytes serialize(const Opening& message);
[[nodiscard]] Bytes serialize(const Hello& message);
[[nodiscard]] Bytes serialize(const Welcome& message);
[[nodiscard]] Bytes serialize(Refusal message);
[[nodiscard]] Bytes serialize(const Failure& message);
[[nodiscard]] Bytes serialize(const GaveUp& message);
[[nodiscard]] Bytes serialize(const Waiting& message);
[[nodiscard]] Bytes serialize(const Table& message);
[[nodiscard]] Bytes serialize(const ContributionMessage& message);
[[nodiscard]] Bytes serialize(const EntryMessage& message);
[[nodiscard]] Bytes serialize(const std::vector<Bytes>& announcements);
[[nodiscard]] Bytes serialize_rank(int rank);

// Reads only the version of a message of another version.
[[nodiscard]] std::optional<Opening> parse_opening(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Hello> parse_hello(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Welcome> parse_welcome(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Refusal> parse_refusal(std::span<const std::byte> bytes);
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

}  // namespace hccl::bootstrap
