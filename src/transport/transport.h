// SPDX-License-Identifier: Apache-2.0
// One kind of way between ranks: whether two can use it, and the endpoints it makes.
#pragma once

#include "base/deadline.h"
#include "base/fields.h"
#include "base/interfaces.h"
#include "base/secret.h"
#include "transport/endpoint.h"
#include "transport/region.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hccl::transport {

// A rank's membership of a communicator. All its ranks know the secret and the number, and nobody
// else knows the secret.
struct Membership {
  Secret secret{};
  std::uint64_t communicator = 0;
  int rank = -1;
  int size = 0;
};

// Which of the streams between two ranks.
struct Channel {
  std::uint32_t lane = 0;
  std::uint32_t number = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the operator for a null pointer
  friend auto operator<=>(const Channel&, const Channel&) = default;
};

struct Limits {
  // An accepted connection must prove within this time that it is a rank's.
  Deadline::Duration handshake = std::chrono::seconds(10);
  // A rank that cannot be reached is given up after this time; one that answers is waited for
  // without a limit.
  Deadline::Duration connect = std::chrono::seconds(120);
  // A host that acknowledges nothing during this time is lost. A stopped process is not: its host
  // answers.
  Deadline::Duration silence = std::chrono::seconds(20);
  // Unproven connections at a time; the oldest gives way.
  std::size_t pending = 64;
};

struct Settings {
  Membership membership;
  std::string box;                    // base/process.h: box_identity()
  std::vector<Interface> interfaces;  // all of this machine
  std::string interface_names;        // HCCL_SOCKET_IFNAME
  std::string ib_devices;             // HCCL_IB_HCA
  std::optional<int> ib_gid_index;    // HCCL_IB_GID_INDEX
  bool ib_disable = false;            // HCCL_IB_DISABLE
  Limits limits;
};

enum class Cost : std::uint8_t { memory, network };  // cheapest first

struct Reach {
  bool possible = false;
  Cost cost = Cost::network;
  std::string why_not;  // a clause, where it is not possible
};

// A condition that keeps a transport from working now, though it may come back.
struct Trouble {
  hcclResult_t code = hcclSuccess;  // there is none
  std::string text;
};

constexpr std::size_t kMostAddressBytes = 256;

// Belongs to one rank of one communicator. Any thread may call it. Its endpoints may outlive it;
// those that are not connected then stay so.
class Transport {
 public:
  explicit Transport(const char* name) : name_(name) {}
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] const char* name() const { return name_; }
  // Returns the opaque address with which other ranks reach this one, at most kMostAddressBytes.
  // They can connect as soon as it has been returned.
  [[nodiscard]] virtual const Bytes& address() const = 0;
  // Returns whether this rank and the one with that address can use it. Both come to the same
  // answer.
  [[nodiscard]] virtual Reach reach(std::span<const std::byte> peer_address) const = 0;
  // A new endpoint; returns at once. The rank with the smaller number connects, the other accepts;
  // both must open it. Each channel of a peer can be opened once. A peer that never connects is
  // waited for: that its process has gone is for bootstrap to notice. Throws Error.
  [[nodiscard]] virtual std::unique_ptr<Endpoint> open(int peer, Channel channel,
                                                       std::span<const std::byte> peer_address) = 0;
  // Returns whether learn() does anything.
  [[nodiscard]] virtual bool learns() const { return false; }
  // The region is mapped at its address for good, though its pages may come and go: what is sent
  // from and received into it need not be copied.
  virtual void learn(const Region& /*region*/) {}
  // The pages of the region, known by its file and offset, have been given back: nothing is on its
  // way from or to them, and nothing will be before this returns.
  virtual void invalidate(const Region& /*region*/) {}
  // Does not block.
  [[nodiscard]] virtual Trouble trouble() { return {}; }
  // One line for each thing that was chosen or rejected, and why; for people.
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }

 private:
  const char* name_;
};

}  // namespace hccl::transport
