// SPDX-License-Identifier: Apache-2.0
// Opens the NIC, and creates the listener, the dialers and the endpoints.
#include "verbs/verbs_transport.h"

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "transport/dialer.h"
#include "transport/tcp_keep_alive.h"
#include "verbs/stream_memory.h"
#include "verbs/verbs_endpoint.h"

#include <algorithm>
#include <cerrno>

#include <netinet/in.h>
#include <sys/socket.h>

namespace hccl::verbs {
namespace {

using transport::Reach;
using transport::StreamKey;

constexpr int kBacklog = 4096;

std::string describe(int /*socket*/, const SocketAddress& from) {
  return from_socket_address(from.get()).to_text();
}

}  // namespace

VerbsTransport::VerbsTransport(const transport::Settings& settings, const VerbsLibrary& library,
                               PortChoice choice)
    : Transport("verbs"),
      own_(settings.membership),
      limits_(settings.limits),
      remarks_(std::move(choice.remarks)),
      device_(RdmaDevice::open(library, choice.usable.front())),
      cache_(std::make_shared<RegistrationCache>(device_)) {
  if (!fork_remark().empty()) remarks_.push_back(fork_remark());
  if (!device_->confines_windows()) {
    remarks_.push_back(
        text("the driver of ", device_->port().device,
             " offers no memory windows that confine peers, so messages shorter than ",
             RegistrationCache::kLeastExact >> 10, " KiB are copied through ring buffers"));
  }
  // Checks now whether memory can be locked, so that initialisation fails with advice if it cannot.
  static_cast<void>(StreamMemory(*cache_));
  std::vector<FileDescriptor> sockets;
  sockets.push_back(listen());
  listener_ = std::make_shared<transport::Listener>(
      std::move(sockets), own_, limits_,
      transport::SocketFamily{.name = "verbs", .describe = describe, .objection = nullptr});
  address_ = serialize(own_address_);
}

FileDescriptor VerbsTransport::listen() {
  own_address_.network = network_number();
  own_address_.gid = device_->port().gid.bytes;
  const Address address = tcp_address(own_address_);
  const SocketAddress where = to_socket_address(address);
  FileDescriptor socket(
      ::socket(address.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() || bind(socket.get(), where.get(), where.length) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    throw Error(hcclSystemError,
                text("cannot listen on ", address.host_text(), ", the address of GID ",
                     device_->port().gid.index, " of ", device_->port().device, ": ",
                     system_error_text(errno), "; choose another GID with HCCL_IB_GID_INDEX"));
  }
  own_address_.tcp_port = local_address(socket.get()).port;
  return socket;
}

Reach VerbsTransport::reach(std::span<const std::byte> peer_address) const {
  const auto theirs = parse_verbs_address(peer_address);
  if (!theirs) return {false, "its RDMA address is malformed"};
  const std::string why_not =
      why_unreachable(own_address_.gid, theirs->gid, own_address_.network == theirs->network);
  return {why_not.empty(), why_not};
}

std::unique_ptr<transport::Endpoint> VerbsTransport::open(int peer,
                                                          transport::ConnectionId connection,
                                                          std::span<const std::byte> peer_address) {
  const StreamKey key = transport::key_between(own_, peer, connection);
  std::unique_ptr<transport::ConnectionAttempt> connecting;
  if (key.to == own_.rank) {
    connecting = std::make_unique<transport::InboundConnection>(listener_, key);
  } else {
    const auto published = parse_verbs_address(peer_address);
    if (!published) {
      throw Error(hcclInternalError, text("rank ", peer, " has published a malformed RDMA address",
                                          "; install the same version of hccl on all ranks"));
    }
    const Address address = tcp_address(*published);
    connecting = std::make_unique<transport::Dialer>(
        std::vector<transport::DialTarget>{{to_socket_address(address), address.to_text()}}, own_,
        key, limits_, transport::set_keep_alive);
  }
  return std::make_unique<VerbsEndpoint>(own_.rank, peer, std::move(connecting), device_, cache_,
                                         limits_);
}

transport::MakeResult make_transport(const transport::Settings& settings) {
  if (settings.config->ib_disable) return {nullptr, "HCCL_IB_DISABLE is set"};
  if (settings.config->encryption.value_or(Protection::off) != Protection::off) {
    return {nullptr, "HCCL_ENCRYPT is integrity or full, and RoCE cannot protect data"};
  }
  const VerbsLibrary* const library = verbs_library();
  if (library == nullptr) return {nullptr, why_no_verbs_library()};
  PortChoice choice = choose_ports(list_ports(*library),
                                   {settings.config->ib_devices, settings.config->ib_gid_index,
                                    settings.config->socket_interfaces},
                                   settings.interfaces);
  if (choice.usable.empty()) return {nullptr, choice.why_none};
  return {std::make_unique<VerbsTransport>(settings, *library, std::move(choice)), ""};
}

}  // namespace hccl::verbs
