// SPDX-License-Identifier: Apache-2.0
// The data that a joining rank has about the root server of its unique id, and the errors that name
// the server.
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
  Address address{};  // the one that has answered; without a port until one has
  ProcessIdentity process{};
  int rank = -1;          // of the server's process; -1: it has none
  bool is_known = false;  // confirmed by a key or by the kernel

  // Returns the address that has answered, or all addresses of the id if none has.
  [[nodiscard]] std::string where() const;
  // Returns a description of the server's process.
  [[nodiscard]] std::string description() const;
  // Asks the kernel which user owns the process at the other end of a connection within this
  // machine. Returns `known` if it is this user, `none` if the other end is closed, and `unknown`
  // if the kernel is not asked or does not answer. Throws Error(hcclSocketError) if it is another
  // user.
  [[nodiscard]] SocketOwner::Knowledge check_user(int socket) const;

  // Throw the error for a server that violates the protocol.
  [[noreturn]] void throw_unknown_peer(const FrameConnection& connection) const;
  [[noreturn]] void throw_protocol_error() const;
  // Throws the reason why the server refuses this rank.
  [[noreturn]] void throw_refusal(const Frame& frame) const;
  // Throws a failure that the server reports. Quotes the text if the server has not been
  // authenticated.
  [[noreturn]] void throw_failure(const Failure& failure) const;
};

}  // namespace hccl::bootstrap
