// SPDX-License-Identifier: Apache-2.0
// Manages the streams of a device, and frees memory after the work that uses the memory has run.
#include "device/device.h"

#include "base/text.h"

#include <algorithm>
#include <atomic>
#include <iomanip>

namespace hccl::device {

Device::Device(std::uint32_t id, std::uint32_t module, FileDescriptor claim,
               std::uint64_t memory_bytes, std::uint64_t keep_bytes)
    : id_(id),
      module_(module),
      claim_(std::move(claim)),
      arena_(base_address(id), memory_bytes, module, keep_bytes) {}

std::shared_ptr<Stream> Device::create_stream() {
  static std::atomic<std::uint64_t> next_id{1};
  auto stream = std::make_shared<Stream>(*this, next_id.fetch_add(1));
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream);
  stream_count_.store(streams_.size(), std::memory_order_release);
  return stream;
}

void Device::destroy_stream(const std::shared_ptr<Stream>& stream) {
  stream->close();
  const std::lock_guard lock(mutex_);
  std::erase(streams_, stream);
  stream_count_.store(streams_.size(), std::memory_order_release);
}

bool Device::others_idle(const Stream& stream) const {
  if (stream_count_.load(std::memory_order_acquire) <= 1) return true;
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(
      streams_, [&](const auto& other) { return other.get() == &stream || other->idle(); });
}

std::vector<std::shared_ptr<Stream>> Device::streams() const {
  const std::lock_guard lock(mutex_);
  return streams_;
}

Outcome Device::synchronize(std::string* reason) {
  Outcome worst = Outcome::success;
  for (const auto& stream : streams()) {
    std::string why;
    const Outcome outcome = stream->synchronize(&why);
    if (outcome == Outcome::success || (worst != Outcome::success && worst <= outcome)) continue;
    worst = outcome;
    if (reason != nullptr) *reason = std::move(why);
  }
  arena_.collect();
  return worst;
}

void Device::free_memory(DeviceAddress address) {
  std::vector<Capture> pending;
  for (const auto& stream : streams()) {
    Capture capture = stream->capture();
    if (!capture.complete()) pending.push_back(std::move(capture));
  }
  arena_.release(address, [pending = std::move(pending)] {
    return std::all_of(pending.begin(), pending.end(),
                       [](const Capture& work) { return work.complete(); });
  });
}

std::string pci_bus_id(std::uint32_t module) {
  return text("0000:", std::hex, std::setw(2), std::setfill('0'), (0x10 + module) & 0xff, ":00.0");
}

}  // namespace hccl::device
