// SPDX-License-Identifier: Apache-2.0
// The root server of a unique id as a joining rank knows it, and the errors that name the server.
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
  Address address{};  // that has answered; without a port if none has
  ProcessIdentity process{};
  int rank = -1;          // of the server's process; -1: it has none
  bool is_known = false;  // by a key or by the kernel

  // Returns the address that has answered, or else all addresses of the id.
  [[nodiscard]] std::string where() const;
  // Returns the description of the server's process.
  [[nodiscard]] std::string description() const;
  // Asks the kernel which user's process has accepted a connection within this machine. Returns
  // `known` if it is this user's, `none` if the other end is closed, and `unknown` if the kernel is
  // not asked or does not answer. Throws Error(hcclSocketError) if it belongs to another user.
  [[nodiscard]] SocketOwner::Knowledge check_user(int socket) const;

  // Throw the error of a server that breaks the protocol.
  [[noreturn]] void throw_unknown_peer(const FrameConnection& connection) const;
  [[noreturn]] void throw_protocol_error() const;
  // Throws the reason why the server refuses this rank.
  [[noreturn]] void throw_refusal(const Frame& frame) const;
  // Throws a failure that the server reports. Quotes the text of a server that has not been
  // authenticated.
  [[noreturn]] void throw_failure(const Failure& failure) const;
};

}  // namespace hccl::bootstrap
