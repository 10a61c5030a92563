// SPDX-License-Identifier: Apache-2.0
// Determines which ranks are on the same node, and connects sockets to share memory with them.
#include "shm/shm_transport.h"

#include "base/error.h"
#include "base/peer_process.h"
#include "base/sha256.h"
#include "base/text.h"
#include "shm/shm_endpoint.h"
#include "transport/dialer.h"

#include <array>
#include <optional>

#include <unistd.h>

namespace hccl::shm {
namespace {

using transport::Reach;
using transport::StreamKey;

constexpr std::uint8_t kFormat = 1;

struct ShmAddress {
  Bytes node;
  SocketName name{};
};

std::optional<ShmAddress> parse_address(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  ShmAddress result;
  const bool known = reader.u8() == kFormat;
  result.node = reader.bytes(sizeof(Digest));
  result.name = reader.array<sizeof(SocketName)>();
  if (!known || !reader.complete()) return std::nullopt;
  return result;
}

std::string describe(int socket, const SocketAddress& /*from*/) {
  const auto credentials = peer_credentials(socket);
  if (!credentials) return "an unknown process";
  return text("process ", credentials->pid, " of user ", credentials->uid);
}

std::string objection_to_other_users(int socket) {
  return peer_user(socket) == geteuid() ? "" : "belongs to another user";
}

std::vector<FileDescriptor> only(FileDescriptor listener) {
  std::vector<FileDescriptor> sockets;
  sockets.push_back(std::move(listener));
  return sockets;
}

}  // namespace

ShmTransport::ShmTransport(const transport::Settings& settings)
    : Transport("shm"),
      own_(settings.membership),
      limits_(settings.limits),
      name_(random_secret()),
      listener_(std::make_shared<transport::Listener>(
          only(listen_on(name_)), own_, limits_,
          transport::SocketFamily{
              .name = "shm", .describe = describe, .objection = objection_to_other_users})) {
  const Digest digest = sha256(std::as_bytes(std::span(settings.node)));
  node_.assign(digest.begin(), digest.end());
  WireWriter writer;
  writer.put_u8(kFormat);
  writer.put_bytes(node_);
  writer.put_bytes(name_);
  address_ = writer.take();
}

Reach ShmTransport::reach(std::span<const std::byte> peer_address) const {
  const auto theirs = parse_address(peer_address);
  if (!theirs) return {false, "its shared-memory address is malformed"};
  if (theirs->node == node_) return {true, ""};
  return {false, "it is on another node (another host, network namespace, user or HCCL_NODE_ID)"};
}

std::unique_ptr<transport::Endpoint> ShmTransport::open(int peer,
                                                        transport::ConnectionId connection,
                                                        std::span<const std::byte> peer_address) {
  const StreamKey key = transport::key_between(own_, peer, connection);
  const Reach reachable = reach(peer_address);
  if (!reachable.possible) {
    throw Error(hcclSystemError, text("rank ", own_.rank, " shares no memory with rank ", peer,
                                      ": ", reachable.why_not, "; use another transport"));
  }
  std::unique_ptr<transport::ConnectionAttempt> connecting;
  if (key.to == own_.rank) {
    connecting = std::make_unique<transport::InboundConnection>(listener_, key);
  } else {
    const SocketName name = parse_address(peer_address)->name;
    connecting = std::make_unique<transport::Dialer>(
        std::vector<transport::DialTarget>{{abstract_address(name), '@' + name_text(name)}}, own_,
        key, limits_);
  }
  return std::make_unique<ShmEndpoint>(own_.rank, peer, std::move(connecting));
}

transport::MakeResult make_transport(const transport::Settings& settings) {
  return {std::make_unique<ShmTransport>(settings), ""};
}

}  // namespace hccl::shm
