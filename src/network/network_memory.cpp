// SPDX-License-Identifier: Apache-2.0
#include "network/network_memory.h"

#include <algorithm>

namespace hccl::network {
namespace {

constexpr std::uint64_t kWindow = device::ArenaView::kWindowBytes;
// Transports copy smaller buffers even if they are registered.
constexpr std::uint64_t kMinRegistered = std::uint64_t{4} << 10;

}  // namespace

NetworkMemory::NetworkMemory(device::Arena& arena,
                             const std::vector<std::unique_ptr<transport::Transport>>& transports)
    : arena_(arena), registered_(arena.view()->bytes() / kWindow + 1) {
  for (const auto& transport : transports) {
    if (transport->registers_memory()) registering_.push_back(transport.get());
  }
  if (!registering_.empty()) arena_.watch(*this);
}

NetworkMemory::~NetworkMemory() {
  if (!registering_.empty()) arena_.unwatch(*this);
}

void NetworkMemory::register_memory(std::uint64_t address, std::uint64_t bytes) {
  if (registering_.empty() || bytes < kMinRegistered || !device::is_device_address(address)) return;
  const std::uint64_t begin = arena_.file_offset(address);
  const std::lock_guard lock(mutex_);
  device::ArenaView& view = *arena_.view();
  for (std::uint64_t window = begin / kWindow; window <= (begin + bytes - 1) / kWindow; ++window) {
    if (registered_[window]) continue;
    const std::uint64_t offset = window * kWindow;
    const auto length = static_cast<std::size_t>(std::min(kWindow, view.bytes() - offset));
    for (transport::Transport* const transport : registering_)
      transport->register_memory({view.at(offset), length, view.file().get(), offset});
    registered_[window] = true;
  }
}

void NetworkMemory::pages_freed(std::uint64_t file_offset, std::uint64_t bytes) noexcept {
  for (transport::Transport* const transport : registering_) {
    transport->invalidate(
        {nullptr, static_cast<std::size_t>(bytes), arena_.view()->file().get(), file_offset});
  }
}

}  // namespace hccl::network
