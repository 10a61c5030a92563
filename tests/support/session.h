// SPDX-License-Identifier: Apache-2.0
// A rank's device, streams and communicators, made and ended through the public API alone.
#pragma once

#include "check.h"
#include "ranks.h"

#include <hccl.h>
#include <synapse_api.h>

#include <cstddef>
#include <span>
#include <vector>

namespace hccl::test {

// A communicator and the world's ranks in it: members[i] is its rank i.
struct Group {
  hcclComm_t handle = nullptr;
  std::vector<int> members;
  int rank = 0;
  [[nodiscard]] int size() const { return static_cast<int>(members.size()); }
};

// Rank 0 makes a unique id and passes it to the others over the slot of the board. Blocks until the
// id is there. Returns it.
[[nodiscard]] hcclUniqueId share_id(const World& world, int slot = 0);

class Session {
 public:
  // Initialises the runtime (unless ranks are threads: then it is), and takes a device.
  explicit Session(World& world);
  // Releases what finish() has not, and ignores errors because something has failed already.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const World& world() const { return world_; }
  [[nodiscard]] synDeviceId device() const { return device_; }

  [[nodiscard]] synStreamHandle make_stream();
  [[nodiscard]] synEventHandle make_event();

  // Joins a communicator of all ranks, or of `members` in that order. `slot` of the board carries
  // its id.
  [[nodiscard]] Group join_all(int slot = 0);
  [[nodiscard]] Group join_members(int slot, const std::vector<int>& members);

  // Ends events, streams, communicators, device and runtime in the order programs use, each with
  // success.
  void finish();
  // The communicators are gone already (aborted, destroyed).
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
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): as the API has it
}

// Device memory for the length of a scope.
class DeviceMemory {
 public:
  DeviceMemory(synDeviceId device, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] std::uint64_t address() const { return address_; }
  // Returns the address as calls take it.
  [[nodiscard]] void* pointer() const { return device_pointer(address_); }
  [[nodiscard]] std::size_t size() const { return size_; }
  // Returns its address in the host view.
  [[nodiscard]] void* view() const;

 private:
  synDeviceId device_;
  std::size_t size_;
  std::uint64_t address_ = 0;
};

// Waits for each stream; requires success.
void synchronize(std::span<const synStreamHandle> streams);

// Queue copies; the host side must outlive them.
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
