// SPDX-License-Identifier: Apache-2.0
#include "verbs/device.h"

#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/text.h"
#include "verbs/verbs_errors.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>

namespace hccl::verbs {

Registration::~Registration() {
  // Ignores a failure: if the NIC has been removed, its registrations are gone too.
  if (region_ != nullptr) static_cast<void>(device_->library().dereg_mr(region_));
}

void FreeWindow::operator()(ibv_mw* window) const { static_cast<void>(ibv_dealloc_mw(window)); }

std::shared_ptr<RdmaDevice> RdmaDevice::open(const VerbsLibrary& library, const UsablePort& port) {
  const std::shared_ptr<RdmaDevice> device(new RdmaDevice(library, port));
  device->open_context();
  return device;
}

void RdmaDevice::open_context() {
  const StandardStreamPlaceholders placeholders;
  int count = 0;
  ibv_device** const devices = library_.get_device_list(&count);
  for (int i = 0; devices != nullptr && i < count; ++i) {
    if (port_.device == library_.get_device_name(devices[i]))
      context_ = library_.open_device(devices[i]);
  }
  const int error = errno;
  if (devices != nullptr) library_.free_device_list(devices);
  if (context_ != nullptr) domain_ = library_.alloc_pd(context_);
  if (context_ == nullptr || domain_ == nullptr) {
    throw Error(
        hcclSystemError,
        text("cannot open the RDMA device ", port_.device, ": ",
             system_error_text(context_ == nullptr ? error : errno),
             "; check that /dev/infiniband exists and that this process may read and write it"));
  }
  find_windows();
  const int flags = fcntl(context_->async_fd, F_GETFL);
  fcntl(context_->async_fd, F_SETFL, flags | O_NONBLOCK);
}

RdmaDevice::~RdmaDevice() {
  if (domain_ != nullptr) static_cast<void>(library_.dealloc_pd(domain_));
  if (context_ != nullptr) static_cast<void>(library_.close_device(context_));
}

// Also allocates a window, because a driver may lack the function although the NIC has windows.
void RdmaDevice::find_windows() {
  constexpr std::uint32_t kSoftwareVendor = 0xffffff;
  constexpr unsigned kType2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  ibv_device_attr attributes{};
  if (library_.query_device(context_, &attributes) != 0 ||
      (attributes.device_cap_flags & kType2) == 0) {
    return;
  }
  ibv_mw* const window = ibv_alloc_mw(domain_, IBV_MW_TYPE_2);
  if (window == nullptr) return;
  static_cast<void>(ibv_dealloc_mw(window));
  has_windows_ = true;
  confines_windows_ = attributes.vendor_id != kSoftwareVendor;
}

MemoryWindow RdmaDevice::allocate_window() {
  ibv_mw* const window = ibv_alloc_mw(domain_, IBV_MW_TYPE_2);
  if (window != nullptr) return {window, FreeWindow{shared_from_this()}};
  throw Error(hcclSystemError,
              text("cannot allocate a memory window on ", port_.device, ": ",
                   system_error_text(errno), "; use fewer communicators and streams"));
}

std::optional<Registration> RdmaDevice::try_register(std::span<std::byte> memory,
                                                     PeerAccess peers) {
  int access = IBV_ACCESS_LOCAL_WRITE;
  if (peers != PeerAccess::none) {
    access |=
        peers == PeerAccess::window && has_windows_ ? IBV_ACCESS_MW_BIND : IBV_ACCESS_REMOTE_WRITE;
  }
  ibv_mr* const region = library_.reg_mr(domain_, memory.data(), memory.size(), access);
  if (region == nullptr) return std::nullopt;
  return Registration(shared_from_this(), region);
}

void RdmaDevice::record(const ibv_async_event& event) {
  const bool of_port =
      event.event_type == IBV_EVENT_PORT_ACTIVE || event.event_type == IBV_EVENT_PORT_ERR;
  if (of_port && event.element.port_num != port_.number) return;
  if (trouble_.code == hcclSystemError) return;  // a lost NIC does not recover
  if (event.event_type == IBV_EVENT_PORT_ACTIVE) trouble_ = {};
  const Severity severity = severity_of(event.event_type);
  if (severity != Severity::port_down && severity != Severity::device_gone) return;
  trouble_ = {severity == Severity::port_down ? hcclPortDown : hcclSystemError,
              describe_event(event.event_type, port_.device, port_.number)};
}

transport::Trouble RdmaDevice::check() {
  const std::lock_guard lock(mutex_);
  ibv_async_event event{};
  while (library_.get_async_event(context_, &event) == 0) {
    record(event);
    library_.ack_async_event(&event);
  }
  return trouble_;
}

}  // namespace hccl::verbs
