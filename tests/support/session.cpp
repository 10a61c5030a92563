// SPDX-License-Identifier: Apache-2.0
// Creates and releases a rank's device, streams, events and communicators.
#include "session.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include <hccl_emulation.h>

namespace hccl::test {

Session::Session(World& world) : world_(world) {
  if (!world.threads) succeed(synInitialize());
  succeed(synDeviceAcquire(&device_, nullptr));
}

Session::~Session() { end(false); }

synStreamHandle Session::make_stream() {
  synStreamHandle& stream = streams_.emplace_back();
  succeed(synStreamCreateGeneric(&stream, device_, 0));
  return stream;
}

synEventHandle Session::make_event() {
  synEventHandle& event = events_.emplace_back();
  succeed(synEventCreate(&event, device_, 0));
  return event;
}

hcclUniqueId share_id(const World& world, int slot) {
  if (world.rank != 0) return world.board->await_id(slot);
  hcclUniqueId id{};
  succeed(hcclGetUniqueId(&id));
  world.board->publish_id(slot, id);
  return id;
}

Group Session::join_all(int slot) {
  std::vector<int> members(static_cast<std::size_t>(world_.size));
  std::iota(members.begin(), members.end(), 0);
  return join_members(slot, members);
}

Group Session::join_members(int slot, const std::vector<int>& members) {
  Group group;
  group.members = members;
  const auto own = std::find(members.begin(), members.end(), world_.rank);
  require(own != members.end(), "this rank is not a member of the communicator");
  group.rank = static_cast<int>(own - members.begin());
  hcclUniqueId id{};
  const bool by_address = std::getenv("HCCL_COMM_ID") != nullptr && communicators_.empty();
  if (group.rank == 0) {
    succeed(hcclGetUniqueId(&id));
    world_.board->publish_id(slot, id);
  } else if (!by_address) {
    id = world_.board->await_id(slot);
  }
  succeed(hcclCommInitRank(&group.handle, group.size(), id, group.rank));
  communicators_.push_back(group.handle);
  return group;
}

void Session::finish() { end(true); }

void Session::end(bool strict) {
  const auto check = [strict](auto result) {
    if (strict) succeed(result);
  };
  const auto end_all = [&](auto& handles, auto destroy) {
    while (!handles.empty()) {
      auto* const last = handles.back();
      handles.pop_back();
      check(destroy(last));
    }
  };
  end_all(events_, synEventDestroy);
  end_all(streams_, synStreamDestroy);
  end_all(communicators_, hcclCommDestroy);
  const synDeviceId device = std::exchange(device_, SYN_INVALID_DEVICE_ID);
  if (device == SYN_INVALID_DEVICE_ID) return;
  check(synDeviceRelease(device));
  if (!world_.threads) check(synDestroy());
}

DeviceMemory::DeviceMemory(synDeviceId device, std::size_t bytes) : device_(device), size_(bytes) {
  succeed(synDeviceMalloc(device, bytes, 0, 0, &address_));
  require(address_ != 0, "synDeviceMalloc returned a null address");
}

// Does nothing after Session::finish(), which has released the memory along with the device.
DeviceMemory::~DeviceMemory() {
  std::uint64_t free = 0;
  std::uint64_t total = 0;
  if (synDeviceGetMemoryInfo(device_, &free, &total) == synSuccess)
    static_cast<void>(synDeviceFree(device_, address_, 0));
}

void* DeviceMemory::view() const {
  void* view = nullptr;
  succeed(hcclEmulationHostView(address_, size_, &view));
  return view;
}

PinnedMemory::PinnedMemory(synDeviceId device, std::span<const std::byte> content)
    : device_(device) {
  void* memory = nullptr;
  succeed(synHostMalloc(device, content.size(), 0, &memory));
  bytes_ = {static_cast<std::byte*>(memory), content.size()};
  std::ranges::copy(content, bytes_.begin());
}

PinnedMemory::~PinnedMemory() { static_cast<void>(synHostFree(device_, bytes_.data(), 0)); }

void synchronize(std::span<const synStreamHandle> streams) {
  for (synStreamHandle stream : streams) succeed(synStreamSynchronize(stream));
}

}  // namespace hccl::test
