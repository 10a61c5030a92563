// SPDX-License-Identifier: Apache-2.0
// Starts, finds and retires root servers.
#include "bootstrap/server_registry.h"

#include "base/config.h"
#include "base/errno_advice.h"
#include "base/error.h"
#include "base/interfaces.h"
#include "base/process.h"
#include "base/secret.h"
#include "base/text.h"
#include "bootstrap/comm_id.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/pending_connections.h"
#include "bootstrap/root_server.h"
#include "bootstrap/shared_secret.h"
#include "bootstrap/socket_owner.h"

#include <cerrno>
#include <chrono>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include <unistd.h>

namespace hccl::bootstrap {
namespace {

// How long to retry a port that is in use: the port may belong to the server of a run that is
// ending, or to an outgoing connection.
constexpr std::chrono::seconds kPortPatience{2};
constexpr std::chrono::milliseconds kPortRetry{20};

UniqueId fixed_id(const std::string& comm_id) {
  UniqueId id;
  id.kind = UniqueId::Kind::fixed_address;
  id.addresses = parse_comm_id(comm_id);
  return id;
}

// Listens on the first usable address of the id. On failure, returns an invalid descriptor, and
// sets errno to the last error other than EADDRNOTAVAIL, or to EADDRNOTAVAIL if there was no other.
FileDescriptor listen_on_any(const UniqueId& id) {
  int why = EADDRNOTAVAIL;
  for (const Address& address : id.addresses) {
    FileDescriptor listener = listen_on(address);
    if (listener.valid()) return listener;
    if (errno != EADDRNOTAVAIL) why = errno;
  }
  errno = why;
  return {};
}

// Returns who listens at one of the addresses.
std::string holder_text(const UniqueId& id) {
  for (const Address& address : id.addresses) {
    const SocketOwner owner = tcp_listener_owner(address);
    if (owner.knowledge == SocketOwner::Knowledge::known && owner.user != geteuid())
      return text("a process of user ", owner.user);
  }
  return "another process";
}

// Returns the reason why this process cannot listen on an address. `holder`: holder_text().
std::string trouble_text(int why, const std::string& holder = "another process") {
  if (why == EADDRNOTAVAIL) return "not an address of this machine";
  if (why == EADDRINUSE) return text(holder, " listens on that port");
  return text("cannot listen on this address: ", system_error_text(why));
}

[[noreturn]] void refuse_comm_id(const UniqueId& id, const std::string& comm_id, int why) {
  const bool foreign = why == EADDRNOTAVAIL;
  const char* advice = "choose another address or port";
  if (why == EADDRINUSE) advice = "choose a free port, or end the other process";
  if (foreign) {
    advice =
        "call hcclGetUniqueId on the machine that has this address, or set HCCL_COMM_ID to an "
        "address of this machine";
  }
  throw Error(
      foreign ? hcclInvalidArgument : hcclSocketError,
      text("HCCL_COMM_ID=\"", comm_id, "\": ", trouble_text(why, holder_text(id)), "; ", advice));
}

}  // namespace

ServerRegistry& ServerRegistry::instance() {
  static auto* const registry = new ServerRegistry;
  return *registry;
}

UniqueId ServerRegistry::create() {
  ControlThread::instance().start();
  const std::lock_guard lock(mutex_);
  const std::string comm_id = config()->comm_id;
  if (comm_id.empty() || first_id_made_) return create_with_secret();
  UniqueId id = create_fixed(comm_id);
  first_id_made_ = true;
  return id;
}

UniqueId ServerRegistry::create_fixed(const std::string& comm_id) {
  UniqueId id = fixed_id(comm_id);
  if (servers_.contains(id.key())) return id;
  const Deadline deadline = Deadline::after(kPortPatience);
  FileDescriptor listener = listen_on_any(id);
  while (!listener.valid()) {
    const int why = errno;
    if (why != EADDRINUSE || deadline.expired()) refuse_comm_id(id, comm_id, why);
    std::this_thread::sleep_for(kPortRetry);
    listener = listen_on_any(id);
  }
  add(id, std::move(listener));
  return id;
}

UniqueId ServerRegistry::create_with_secret() {
  const Interface interface = choose_interface(local_interfaces(), config()->socket_interfaces);
  FileDescriptor listener = listen_on(interface.address);
  if (!listener.valid()) {
    throw Error(hcclSocketError,
                text("cannot listen on ", interface.address.host_text(), " (", interface.name,
                     "): ", system_error_text(errno), "; ",
                     advice_on(errno, "name another interface in HCCL_SOCKET_IFNAME")));
  }
  UniqueId id;
  id.secret = random_secret();
  id.addresses = {local_address(listener.get())};
  add(id, std::move(listener));
  return id;
}

std::string ServerRegistry::create_if_absent(const UniqueId& id) {
  const std::lock_guard lock(mutex_);
  if (servers_.contains(id.key())) return {};
  ControlThread::instance().start();
  FileDescriptor listener = listen_on_any(id);
  if (!listener.valid()) return trouble_text(errno);
  add(id, std::move(listener));
  return {};
}

void ServerRegistry::add(const UniqueId& id, FileDescriptor listener) {
  JoinKey key(id);
  // Stretches the secret here, so that the program gets the error if OpenSSL's configuration
  // forbids that, and the control thread does not have to wait.
  if (key.needs_stretching()) static_cast<void>(key.session_key());
  const auto server = std::make_shared<RootServer>(id, std::move(listener), std::move(key));
  server->start();
  servers_[id.key()] = server;
}

std::shared_ptr<RootServer> ServerRegistry::find(const UniqueId& id) {
  const std::lock_guard lock(mutex_);
  const auto found = servers_.find(id.key());
  return found == servers_.end() ? nullptr : found->second;
}

void ServerRegistry::retire(const UniqueId& id) {
  const std::lock_guard lock(mutex_);
  const auto found = servers_.find(id.key());
  if (found == servers_.end()) return;
  found->second->retire();
  servers_.erase(found);
}

UniqueId ServerRegistry::resolve(const hcclUniqueId& id) {
  const std::lock_guard lock(mutex_);
  const std::string comm_id = config()->comm_id;
  // Ranks that are threads of one process may all join the first communicator with an empty id.
  const bool first = !std::exchange(first_communicator_begun_, true);
  if (!comm_id.empty() && (first || (is_empty(id) && !first_communicator_joined_))) {
    return fixed_id(comm_id);
  }
  if (!is_empty(id)) return decode(id);
  throw Error(hcclInvalidArgument,
              comm_id.empty()
                  ? "the unique id is empty and HCCL_COMM_ID is not set; pass the id that rank 0 "
                    "got from hcclGetUniqueId, or set HCCL_COMM_ID=address:port on every rank"
                  : "the unique id is empty, and HCCL_COMM_ID serves only the first communicator "
                    "of a process; pass an id from hcclGetUniqueId");
}

void ServerRegistry::note_joined(const UniqueId& id) {
  const std::lock_guard lock(mutex_);
  if (id.kind == UniqueId::Kind::fixed_address) first_communicator_joined_ = true;
}

hcclUniqueId create_unique_id() { return encode(ServerRegistry::instance().create()); }

void retire_unique_id(const hcclUniqueId& id) noexcept {
  if (is_empty(id) || is_forked_child()) return;
  try {
    ServerRegistry::instance().retire(decode(id));
  } catch (const std::exception&) {
    // The id is not one of this library's, so there is no server to stop; or no memory is left.
    return;
  }
}

void abandon_unique_id(const hcclUniqueId& id, const std::string& why) noexcept {
  try {
    const auto server = ServerRegistry::instance().find(decode(id));
    if (server) server->abandon({hcclSystemError, why});
  } catch (const std::bad_alloc&) {
    // Without memory, the ranks that have joined are not notified; they wait until their deadline.
  }
}

hcclUniqueId resolve_unique_id(const hcclUniqueId& id) {
  return encode(ServerRegistry::instance().resolve(id));
}

}  // namespace hccl::bootstrap
