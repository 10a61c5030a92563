// SPDX-License-Identifier: Apache-2.0
// The root servers of this process. HCCL_COMM_ID applies only to the first id and the first
// communicator of the process.
#pragma once

#include "base/file_descriptor.h"
#include "bootstrap/unique_id.h"

#include <hccl_types.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace hccl::bootstrap {

class RootServer;

// Thread safety: any thread.
class ServerRegistry {
 public:
  // Returns the only instance, which is never destroyed, like the control thread.
  [[nodiscard]] static ServerRegistry& instance();

  // Starts a server and returns its id. For the first id of the process, the server listens on the
  // address in HCCL_COMM_ID, if set, and is not started if this process already runs it; otherwise,
  // it listens on a free port of the chosen interface. Blocks
  // while the host name in HCCL_COMM_ID is resolved, and for up to 2 s while its port is in use.
  // Throws Error.
  [[nodiscard]] UniqueId create();
  // Starts the server of a fixed address, unless this process already runs it. Returns an empty
  // text on success, and otherwise the reason why this process cannot listen on the address, which
  // does not matter if another process runs the server. Throws Error for any other failure.
  [[nodiscard]] std::string create_if_absent(const UniqueId& id);
  [[nodiscard]] std::shared_ptr<RootServer> find(const UniqueId& id);
  void retire(const UniqueId& id);

  // Does the work of resolve_unique_id(), but returns the decoded id.
  [[nodiscard]] UniqueId resolve(const hcclUniqueId& id);
  // If the id has a fixed address, records that the first communicator is complete: from now on,
  // empty ids are rejected.
  void note_joined(const UniqueId& id);

 private:
  [[nodiscard]] UniqueId create_fixed(const std::string& comm_id);
  [[nodiscard]] UniqueId create_with_secret();
  void add(const UniqueId& id, FileDescriptor listener);

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<RootServer>> servers_;
  bool first_id_made_ = false;
  bool first_communicator_begun_ = false;
  bool first_communicator_joined_ = false;
};

// Starts a root server in this process and returns an id with the server's address and a 128-bit
// secret. If HCCL_COMM_ID is set, the first id of the process contains that address and no secret.
// Throws Error.
[[nodiscard]] hcclUniqueId create_unique_id();

// Retires the server of this id if this process runs it: see RootServer::retire(). Called when a
// communicator is destroyed or cannot be created.
void retire_unique_id(const hcclUniqueId& id) noexcept;
// Fails the rendezvous of this id, because a rank will not join. Does nothing unless this process
// runs the server of this id.
void abandon_unique_id(const hcclUniqueId& id, const std::string& why) noexcept;

// Returns the id with which a rank joins: `id` itself or, for the first communicator of the
// process, the address in HCCL_COMM_ID. The first call is assumed to be for the first communicator,
// and so is every call with an empty id until that communicator is complete. Blocks while a host
// name is resolved. Throws Error(hcclInvalidArgument) if the id or address is not usable, and
// Error(hcclSocketError) if no name server answers in time.
[[nodiscard]] hcclUniqueId resolve_unique_id(const hcclUniqueId& id);

}  // namespace hccl::bootstrap
