// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/root_socket.h"

#include "base/abstract_socket.h"
#include "base/log.h"
#include "base/peer_process.h"
#include "base/secret.h"
#include "base/sha256.h"
#include "base/text.h"

#include <cerrno>
#include <optional>
#include <span>
#include <string>

#include <sys/socket.h>

namespace hccl::bootstrap {

// The name contains a digest of the addresses, so a rank that was given a relay's address does not
// find the socket. Other users can read the names of sockets, so the digest covers the secret of an
// id, which has 128 random bits, but not HCCL_SECRET, which may be guessable.
std::string root_socket_name(const UniqueId& id) {
  std::string addresses;
  for (const Address& address : id.addresses) addresses += text(' ', address.to_text());
  Sha256 hash;
  hash.update(std::as_bytes(std::span(addresses)));
  hash.update(id.secret);
  const Digest digest = hash.finish();
  return abstract_name("hccl-root-", std::span(digest).first<sizeof(Secret)>());
}

FileDescriptor listen_for_local_ranks(const UniqueId& id) {
  if (!has_peer_pidfds()) {
    log(LogLevel::info, "bootstrap", "this kernel provides no pidfds of the peers of unix sockets ",
        "(Linux 6.5), so ranks on this host join over TCP");
    return {};
  }
  const std::string name = root_socket_name(id);
  FileDescriptor listener = try_listen_on_abstract(name);
  if (!listener.valid()) {
    const int why = errno;
    log(why == EADDRINUSE ? LogLevel::warning : LogLevel::info, "bootstrap",
        "cannot listen on the unix socket of ", id.addresses.front().to_text(), " (",
        system_error_text(why), "), so ranks on this host join over TCP",
        why == EADDRINUSE ? text("; find the process that listens on it: ss -xlp | grep ", name)
                          : std::string());
  }
  return listener;
}

FileDescriptor connect_to_local_server(const UniqueId& id) {
  FileDescriptor result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result.valid() || connect_to_abstract(result, root_socket_name(id)) != 0) return {};
  const std::optional<bool> is_trusted = peer_may_be_inspected(result.get());
  if (is_trusted.value_or(false)) return result;
  if (!is_trusted) return {};
  log(LogLevel::info, "bootstrap", "the unix socket of the server at ",
      id.addresses.front().to_text(), " belongs to ", peer_text(result.get()),
      ": another user, in another container, or a process that has exited, so this rank joins over "
      "TCP");
  return {};
}

}  // namespace hccl::bootstrap
