// SPDX-License-Identifier: Apache-2.0
// The fake library's functions.
#include "fake_verbs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace hccl::verbs::test {
namespace {

FakeVerbs* verbs_in_use = nullptr;

FakeDevice& described(const ibv_device* device) {
  return *std::ranges::find_if(verbs_in_use->devices,
                               [&](const FakeDevice& each) { return &each == device; });
}

FakeDevice& device_of(ibv_context* context) { return described(context->device); }

FakePort& port_of(ibv_context* context, std::uint32_t number) {
  return device_of(context).ports.at(number - 1);
}

ibv_device** get_device_list(int* count) {
  if (verbs_in_use->list_error != 0) {
    errno = verbs_in_use->list_error;
    return nullptr;
  }
  auto list = std::make_unique<ibv_device*[]>(verbs_in_use->devices.size() + 1);
  for (std::size_t i = 0; i < verbs_in_use->devices.size(); ++i)
    list[i] = &verbs_in_use->devices[i];
  *count = static_cast<int>(verbs_in_use->devices.size());
  ++verbs_in_use->open_lists;
  return list.release();
}

void free_device_list(ibv_device** list) {
  const std::unique_ptr<ibv_device*[]> owner(list);
  --verbs_in_use->open_lists;
}

const char* get_device_name(ibv_device* device) { return described(device).device_name.c_str(); }

ibv_context* open_device(ibv_device* device) {
  errno = described(device).open_error;
  if (errno != 0) return nullptr;
  auto context = std::make_unique<ibv_context>();
  context->device = device;
  context->ops = verbs_in_use->operations;
  context->async_fd = -1;
  ++verbs_in_use->open_devices;
  return context.release();
}

int close_device(ibv_context* context) {
  const std::unique_ptr<ibv_context> owner(context);
  --verbs_in_use->open_devices;
  return 0;
}

int query_device(ibv_context* context, ibv_device_attr* attributes) {
  constexpr std::uint32_t kSoftwareVendor = 0xffffff;
  attributes->vendor_id = device_of(context).confines_windows ? 0x2c9 : kSoftwareVendor;
  if (device_of(context).has_windows)
    attributes->device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  attributes->phys_port_cnt = static_cast<std::uint8_t>(device_of(context).ports.size());
  return device_of(context).query_error;
}

int query_exported_port(ibv_context* context, std::uint8_t number,
                        _compat_ibv_port_attr* attributes) {
  // The exported function of libibverbs sets neither port_cap_flags2 nor the fields after it.
  std::memcpy(attributes, &port_of(context, number).attributes,
              offsetof(ibv_port_attr, port_cap_flags2));
  return port_of(context, number).error;
}

int query_gid(ibv_context* context, std::uint8_t number, int index, ibv_gid* gid) {
  const auto& gids = port_of(context, number).gids;
  const auto found = gids.find(index);
  *gid = found == gids.end() ? ibv_gid{} : found->second.gid;
  return 0;
}

int query_gid_ex(ibv_context* context, std::uint32_t number, std::uint32_t index,
                 ibv_gid_entry* entry, std::uint32_t /*flags*/, std::size_t size) {
  if (verbs_in_use->gid_error != 0) return verbs_in_use->gid_error;
  const auto& gids = port_of(context, number).gids;
  const auto found = gids.find(static_cast<int>(index));
  if (found == gids.end()) return ENODATA;
  std::memcpy(entry, &found->second, size);
  return 0;
}

}  // namespace

FakeDevice::FakeDevice(const char* called, std::vector<FakePort> with)
    : ibv_device{}, device_name(called), ports(std::move(with)) {}

FakeVerbs::FakeVerbs() {
  verbs_in_use = this;
  library.get_device_list = get_device_list;
  library.free_device_list = free_device_list;
  library.get_device_name = get_device_name;
  library.open_device = open_device;
  library.close_device = close_device;
  library.query_device = query_device;
  library.query_port = query_exported_port;
  library.query_gid = query_gid;
  library.query_gid_ex = query_gid_ex;
}

FakeVerbs::~FakeVerbs() { verbs_in_use = nullptr; }

FakePort ethernet_port(int gid_table_length) {
  FakePort port;
  port.attributes.state = IBV_PORT_ACTIVE;
  port.attributes.active_mtu = IBV_MTU_1024;
  port.attributes.link_layer = IBV_LINK_LAYER_ETHERNET;
  port.attributes.gid_tbl_len = gid_table_length;
  return port;
}

}  // namespace hccl::verbs::test
