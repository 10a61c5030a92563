// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/server_identity.h"

#include "base/error.h"
#include "base/text.h"

#include <unistd.h>

namespace hccl::bootstrap {

std::string ServerIdentity::where() const {
  if (address.port != 0) return address.to_text();
  std::string list;
  for (const Address& one : id.addresses) list += text(list.empty() ? "" : " or ", one.to_text());
  return list;
}

std::string ServerIdentity::description() const {
  if (rank >= 0) return rank_text(rank, process);
  return text("the process that made the unique id (pid ", process.pid, ", host ", process.host,
              ')');
}

// Another user may have bound the port of HCCL_COMM_ID first, and may answer in the server's place.
SocketOwner::Knowledge ServerIdentity::check_user(int socket) const {
  using Knowledge = SocketOwner::Knowledge;
  if (id.kind != UniqueId::Kind::fixed_address || !peer_is_local(socket)) return Knowledge::unknown;
  const SocketOwner owner = tcp_peer_owner(socket);
  // Before the server has accepted the connection, and after it has closed it, only the owner of
  // the listening socket is known.
  const SocketOwner listener =
      owner.knowledge == Knowledge::none ? tcp_listener_owner(remote_address(socket)) : owner;
  if (listener.knowledge == Knowledge::known && listener.user != geteuid()) {
    throw Error(hcclSocketError,
                text("rank ", joining_rank, " runs as user ", geteuid(), ", but the server at ",
                     where(), " belongs to user ", listener.user, ", who has taken port ",
                     address.port, "; choose another port in HCCL_COMM_ID"));
  }
  return owner.knowledge;
}

void ServerIdentity::throw_unknown_peer(const FrameConnection& connection) const {
  if (connection.forged())
    throw Error(hcclSocketError, text("the server at ", where(), ": ", forged_record_text()));
  if (!connection.lacks_key()) {
    throw Error(hcclSocketError, text("the program that listens at ", where(),
                                      " is not an hccl server of this version; choose a port ",
                                      "that is free, or end that program"));
  }
  throw_other_secret();
}

void ServerIdentity::throw_other_secret() const {
  if (id.kind == UniqueId::Kind::with_secret) {
    throw Error(
        hcclInvalidArgument,
        text("the unique id belongs to a different server than the one that now listens at ",
             where(), ", or the server has a different HCCL_SECRET than rank ", joining_rank,
             "; pass an id created in this run, and set the same HCCL_SECRET on every rank"));
  }
  throw Error(hcclInvalidArgument,
              text("the server of HCCL_COMM_ID at ", where(), " has a different HCCL_SECRET than ",
                   "rank ", joining_rank, "; set the same HCCL_SECRET on every rank"));
}

void ServerIdentity::throw_protocol_error() const {
  throw Error(hcclSocketError, text("the server at ", where(), " broke the protocol; install ",
                                    "the same version of hccl on all ranks"));
}

void ServerIdentity::throw_refusal(const Frame& frame) const {
  const auto refusal = parse<Refusal>(frame.payload);
  if (!refusal) throw_protocol_error();
  if (refusal->reason == Refusal::other_version) {
    throw Error(hcclSocketError,
                text("the server at ", where(), " does not speak protocol version ",
                     kProtocolVersion, "; install the same version of hccl on all ranks"));
  }
  if (refusal->reason == Refusal::other_secret) throw_other_secret();
  throw Error(hcclInvalidArgument,
              text("rank ", joining_rank, " runs as user ", geteuid(), ", but the server at ",
                   where(), " belongs to another user; run all ranks as one user"));
}

void ServerIdentity::throw_failure(const Failure& failure) const {
  if (is_known) throw Error(failure.code, failure.text);
  throw Error(
      failure.code,
      text("the server at ", where(), ", which is not authenticated, reports ",
           quoted(failure.text),
           "; this report may be forged: to rule that out, set HCCL_SECRET_FILE on every rank"));
}

}  // namespace hccl::bootstrap
