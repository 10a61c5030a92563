// SPDX-License-Identifier: Apache-2.0
// A rank's device, streams and communicators. Uses only the public API.
#pragma once

#include "check.h"
#include "ranks.h"

#include <hccl.h>
#include <synapse_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hccl::test {

// A communicator. Its rank i is rank members[i] of the test.
struct Group {
  hcclComm_t handle = nullptr;
  std::vector<int> members;
  int rank = 0;
  [[nodiscard]] int size() const { return static_cast<int>(members.size()); }
};

// Creates a unique id on rank 0, publishes it in the board's slot `slot`, and returns it on every
// rank. Blocks until the id has been published.
[[nodiscard]] hcclUniqueId share_id(const World& world, int slot = 0);

class Session {
 public:
  // Acquires a device. First initialises the runtime, unless the ranks are threads of one process.
  explicit Session(World& world);
  // Releases everything that finish() has not released. Ignores errors, because a test that has not
  // called finish() has failed.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const World& world() const { return world_; }
  [[nodiscard]] synDeviceId device() const { return device_; }

  [[nodiscard]] synStreamHandle make_stream();
  [[nodiscard]] synEventHandle make_event();

  // Join a communicator of all ranks, or of `members` in that order. The ranks share the id through
  // `slot` of the board. In the session's first communicator, they use the address in HCCL_COMM_ID
  // instead if it is set.
  [[nodiscard]] Group join_all(int slot = 0);
  [[nodiscard]] Group join_members(int slot, const std::vector<int>& members);

  // Destroys events, streams and communicators, releases the device and, unless the ranks are
  // threads, ends the runtime, in this order. Requires that each call succeeds.
  void finish();
  // Makes finish() skip the communicators. Must be called if the test itself has aborted or
  // destroyed the communicators.
  void forget_communicators() { communicators_.clear(); }

 private:
  void end(bool strict);

  World& world_;
  synDeviceId device_ = SYN_INVALID_DEVICE_ID;
  std::vector<synEventHandle> events_;
  std::vector<synStreamHandle> streams_;
  std::vector<hcclComm_t> communicators_;
};

[[nodiscard]] inline std::uint64_t host_address(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}
[[nodiscard]] inline void* device_pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the API does so
}

// Owns device memory.
class DeviceMemory {
 public:
  DeviceMemory(synDeviceId device, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] std::uint64_t address() const { return address_; }
  // Returns the address as a pointer, the form that collectives take.
  [[nodiscard]] void* pointer() const { return device_pointer(address_); }
  [[nodiscard]] std::size_t size() const { return size_; }
  // Returns the address in the host view.
  [[nodiscard]] void* view() const;

 private:
  synDeviceId device_;
  std::size_t size_;
  std::uint64_t address_ = 0;
};

// Owns host memory from synHostMalloc().
class PinnedMemory {
 public:
  // Copies `content` into the memory.
  PinnedMemory(synDeviceId device, std::span<const std::byte> content);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  synDeviceId device_;
  std::span<std::byte> bytes_;
};

// Waits for each stream, and requires success.
void synchronize(std::span<const synStreamHandle> streams);

// Queue copies. The host memory must stay valid until the copy has run.
template <class Value>
void upload(synStreamHandle stream, const std::vector<Value>& from, std::uint64_t to) {
  succeed(synMemCopyAsync(stream, host_address(from.data()), from.size() * sizeof(Value), to,
                          HOST_TO_DRAM));
}
template <class Value>
void upload(synStreamHandle stream, std::vector<Value>&& from, std::uint64_t to) = delete;
template <class Value>
void download(synStreamHandle stream, std::uint64_t from, std::vector<Value>& to) {
  succeed(synMemCopyAsync(stream, from, to.size() * sizeof(Value), host_address(to.data()),
                          DRAM_TO_HOST));
}

}  // namespace hccl::test
