// SPDX-License-Identifier: Apache-2.0
// The errors of a rank whose server cannot be found, refuses it, or cannot be trusted.
#include "base/error.h"
#include "base/text.h"
#include "bootstrap/rendezvous_client.h"

#include <unistd.h>

namespace hccl::bootstrap {

void RendezvousClient::refuse_server(const FrameConnection& connection) const {
  if (connection.forged()) {
    throw Error(hcclSocketError, text("the server at ", where(), " does not know the secret of ",
                                      "this communicator; choose another port"));
  }
  throw Error(hcclSocketError,
              text("the program that listens at ", where(),
                   " is not an hccl server; choose a port ", "that is free, or end that program"));
}

void RendezvousClient::report_refusal(const Frame& frame) const {
  const auto refusal = parse<Refusal>(frame.payload);
  if (!refusal) refuse_protocol();
  switch (refusal->reason) {
    case Refusal::other_version:
      throw Error(hcclSocketError, text("the server at ", where(), " speaks another protocol than ",
                                        kProtocolVersion, "; use one version on all ranks"));
    case Refusal::other_key:
      if (id_.kind == UniqueId::Kind::with_secret) {
        throw Error(hcclInvalidArgument,
                    text("the unique id belongs to another server than the one that now listens ",
                         "at ", where(), "; pass an id of this run"));
      }
      throw Error(hcclInvalidArgument,
                  text("the server of HCCL_COMM_ID at ", where(), " has another HCCL_SECRET than ",
                       "rank ", hello_.rank, "; set the same HCCL_SECRET on every rank"));
    case Refusal::other_user:
      break;
  }
  throw Error(hcclInvalidArgument,
              text("the server at ", where(), " does not belong to user ", geteuid(), " as rank ",
                   hello_.rank, " does; run all ranks as one user"));
}

// Throws the failure. Quotes the text of a server that has not been authenticated.
void RendezvousClient::report_failure(const Failure& failure) const {
  if (server_is_known_) throw Error(failure.code, failure.text);
  throw Error(failure.code, text("the server at ", where(), ", which has proved nothing, says ",
                                 quoted(failure.text), "; set HCCL_SECRET on every rank"));
}

void RendezvousClient::refuse_protocol() const {
  throw Error(hcclSocketError, text("the server at ", where(), " broke the protocol; use one ",
                                    "version on all ranks"));
}

void RendezvousClient::give_up_before_joining() {
  const bool unanswered = server_address_.port != 0;
  throw Error(
      hcclInternalError,
      text("rank ", hello_.rank, " found no server at ", where(), " within ", elapsed_seconds(),
           " s (", last_trouble_, own_trouble_.empty() ? "" : "; ", own_trouble_, "); ",
           unanswered ? "see whether the program that listens there is stopped, hangs or is "
                        "another one"
                      : "start the rank that calls hcclGetUniqueId",
           ", or raise HCCL_INIT_TIMEOUT"));
}

std::string RendezvousClient::where() const {
  if (server_address_.port != 0) return server_address_.to_text();
  std::string list;
  for (const Address& address : id_.addresses) {
    list += text(list.empty() ? "" : " or ", address.to_text());
  }
  return list;
}

std::string RendezvousClient::server_text() const {
  if (server_rank_ >= 0) return rank_text(server_rank_, server_);
  return text("the process that made the unique id (pid ", server_.pid, ", host ", server_.host,
              ')');
}

}  // namespace hccl::bootstrap
