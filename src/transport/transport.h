// SPDX-License-Identifier: Apache-2.0
// A transport: one kind of connection between ranks. It determines whether two ranks can use that
// kind, and opens endpoints.
#pragma once

#include "base/config.h"
#include "base/deadline.h"
#include "base/fields.h"
#include "base/interfaces.h"
#include "base/secret_bytes.h"
#include "transport/endpoint.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hccl::transport {

// A rank's membership in a communicator. All ranks know the communicator's number, and the secret
// by which they authenticate.
struct Membership {
  std::shared_ptr<const SecretBytes> secret{};  // not null
  std::uint64_t communicator = 0;
  int rank = -1;
  int size = 0;
  bool secret_is_private = false;  // whether only the ranks can know the secret
};

// Identifies one of the connections between two ranks.
struct ConnectionId {
  std::uint32_t lane = 0;
  std::uint32_t number = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 mistakes the operator for a null pointer
  friend auto operator<=>(const ConnectionId&, const ConnectionId&) = default;
};

struct ConnectionLimits {
  // Time allowed for an accepted connection to complete the handshake.
  Deadline::Duration handshake = std::chrono::seconds(10);
  // The time after which a rank that cannot be reached counts as lost. There is no time limit for a
  // rank that answers.
  Deadline::Duration connect = std::chrono::seconds(120);
  // The time after which a host that acknowledges nothing counts as lost. The host of a stopped
  // process still sends acknowledgements.
  Deadline::Duration silence = std::chrono::seconds(20);
  // Maximum number of pending connections. When one more arrives, the listener closes another
  // (choose_victim()).
  std::size_t pending = 64;
};

struct Settings {
  Membership membership;
  std::string node;                   // node_identity() of base/process.h
  std::vector<Interface> interfaces;  // local_interfaces() of base/interfaces.h
  // The configuration from the environment, or the default configuration if the caller sets none.
  std::shared_ptr<const Config> config = std::make_shared<const Config>();
  ConnectionLimits limits;
};

struct Reach {
  bool possible = false;
  std::string why_not;  // a clause; empty if the peer can be reached
};

// A range of memory: its address, and its position in the file that backs it. The creator of the
// region owns `fd`, which is -1 if no file backs the memory.
struct Region {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  int fd = -1;
  std::uint64_t offset = 0;  // position of `address` in the file
};

// The reason why a transport cannot work at present.
struct Trouble {
  hcclResult_t code = hcclSuccess;  // hcclSuccess: no trouble
  std::string text;
};

constexpr std::size_t kMaxAddressBytes = 256;

// A transport belongs to one rank of one communicator. Its endpoints may outlive it, but an
// endpoint that is not yet connected when the transport is destroyed may never connect. Thread
// safety: any thread.
class Transport {
 public:
  explicit Transport(const char* name) : name_(name) {}
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] const char* name() const { return name_; }
  // Returns the opaque address by which other ranks reach this rank, at most kMaxAddressBytes long.
  // The transport accepts connections by the time address() returns.
  [[nodiscard]] virtual const Bytes& address() const = 0;
  // Returns whether this rank and the rank with that address can use this transport. Both ranks get
  // the same result.
  [[nodiscard]] virtual Reach reach(std::span<const std::byte> peer_address) const = 0;
  // Returns a new endpoint. Does not block. The smaller rank connects and the larger rank accepts;
  // each must open the connection exactly once. The wait for the peer to connect has no time limit,
  // because bootstrap detects the end of the peer's process. Throws Error if the accepting rank
  // opens the connection a second time, if the address is malformed or cannot be reached, or if a
  // resource is not available.
  [[nodiscard]] virtual std::unique_ptr<Endpoint> open(int peer, ConnectionId connection,
                                                       std::span<const std::byte> peer_address) = 0;
  // Returns whether register_memory() has an effect.
  [[nodiscard]] virtual bool registers_memory() const { return false; }
  // Registers memory, so that transfers from and to it need no copy. The memory must stay mapped at
  // its address, but its pages may be freed and replaced.
  virtual void register_memory(const Region& /*region*/) {}
  // Drops all references to the pages of the region, because the pages have been freed. The file
  // and the offset identify the pages. The caller guarantees that no transfer uses the pages until
  // invalidate() has returned.
  virtual void invalidate(const Region& /*region*/) {}
  // If the transport cannot work at present, returns the reason; otherwise returns a Trouble with
  // hcclSuccess. Does not block.
  [[nodiscard]] virtual Trouble trouble() { return {}; }
  // Returns one line for each NIC or address that was chosen or rejected, with the reason.
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
  // If this transport is a last resort, returns the name of the faster kind of connection that
  // users expect instead; otherwise returns an empty string.
  [[nodiscard]] virtual std::string fallback_for() const { return {}; }

 private:
  const char* name_;
};

}  // namespace hccl::transport
