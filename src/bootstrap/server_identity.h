// SPDX-License-Identifier: Apache-2.0
// The root server of a unique id as a joining rank sees it, and the errors that name the server.
#pragma once

#include "base/address.h"
#include "bootstrap/frame_connection.h"
#include "bootstrap/messages.h"
#include "bootstrap/process_identity.h"
#include "bootstrap/socket_owner.h"
#include "bootstrap/unique_id.h"

#include <string>

namespace hccl::bootstrap {

struct ServerIdentity {
  const UniqueId& id;
  const int joining_rank;
  Address address{};  // the address that answered; until then, its port is 0
  ProcessIdentity process{};
  int rank = -1;          // the rank in the server's process, or -1 if none is known
  bool is_known = false;  // a key or the kernel has confirmed the server

  // Returns the address that has answered, or all addresses of the id if none has.
  [[nodiscard]] std::string where() const;
  // Returns a description of the server's process.
  [[nodiscard]] std::string description() const;
  // For a fixed address on this machine, asks the kernel which user owns the server's end of the
  // connection or, if nobody owns it, the listening socket. Throws Error(hcclSocketError) if that
  // is another user. Returns what the kernel knows about the connection's owner; `unknown` if it is
  // not asked.
  [[nodiscard]] SocketOwner::Knowledge check_user(int socket) const;

  // Throws Error(hcclInvalidArgument): the server has a different secret than this rank.
  [[noreturn]] void throw_other_secret() const;
  // Throws the error for a peer that broke the rules: Error(hcclInvalidArgument) if it has a
  // different secret, otherwise Error(hcclSocketError): bytes were changed in transit, or the peer
  // is not an hccl server.
  [[noreturn]] void throw_unknown_peer(const FrameConnection& connection) const;
  // Throws Error(hcclSocketError) for a server that violates the protocol.
  [[noreturn]] void throw_protocol_error() const;
  // Throws the reason that the server gives for refusing this rank.
  [[noreturn]] void throw_refusal(const Frame& frame) const;
  // Throws the failure that the server has reported. Quotes the text if the server is not
  // authenticated.
  [[noreturn]] void throw_failure(const Failure& failure) const;
};

}  // namespace hccl::bootstrap
