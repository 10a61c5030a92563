// SPDX-License-Identifier: Apache-2.0
#include "fake_memory.h"

#include <algorithm>
#include <cerrno>

namespace hccl::verbs::test {
namespace {

// Local keys, remote keys and region numbers differ, so that code that confuses them fails.
constexpr std::uint32_t kLocal = 0x10000001;
constexpr std::uint32_t kRemote = 0x20000001;
constexpr std::uint32_t kStep = 0x101;
constexpr std::uint32_t kWindow = 0x70000000;  // plus the handle, shifted by kVersionBits
constexpr unsigned kVersionBits = 8;           // ibv_inc_rkey() changes the low bits

FakeMemory* memory_in_use = nullptr;

ibv_pd* alloc_pd(ibv_context* context) {
  auto domain = std::make_unique<ibv_pd>();
  domain->context = context;
  memory_in_use->count_domains(1);
  return domain.release();
}

int dealloc_pd(ibv_pd* domain) {
  const std::unique_ptr<ibv_pd> owner(domain);
  memory_in_use->count_domains(-1);
  return 0;
}

ibv_mr* reg_mr(ibv_pd* domain, void* address, std::size_t length, int access) {
  return memory_in_use->add(domain, address, length, access);
}

int dereg_mr(ibv_mr* region) { return memory_in_use->remove(region); }

ibv_mw* alloc_mw(ibv_pd* domain, ibv_mw_type type) {
  errno = EINVAL;
  return type == IBV_MW_TYPE_2 ? memory_in_use->add_window(domain) : nullptr;
}

int dealloc_mw(ibv_mw* window) {
  memory_in_use->remove_window(window);
  return 0;
}

int get_async_event(ibv_context* /*context*/, ibv_async_event* /*event*/) {
  errno = EAGAIN;
  return -1;
}

void ack_async_event(ibv_async_event* /*event*/) {}

}  // namespace

FakeMemory::FakeMemory() {
  memory_in_use = this;
  verbs_.library.alloc_pd = alloc_pd;
  verbs_.library.dealloc_pd = dealloc_pd;
  verbs_.library.reg_mr = reg_mr;
  verbs_.library.dereg_mr = dereg_mr;
  verbs_.operations.alloc_mw = alloc_mw;
  verbs_.operations.dealloc_mw = dealloc_mw;
  verbs_.library.get_async_event = get_async_event;
  verbs_.library.ack_async_event = ack_async_event;
  verbs_.devices.emplace_back("fake0", std::vector{ethernet_port(1)});
}

FakeMemory::~FakeMemory() { memory_in_use = nullptr; }

std::shared_ptr<RdmaDevice> FakeMemory::open(const GidBytes& gid) const {
  UsablePort port;
  port.device = "fake0";
  port.gid.bytes = gid;
  port.gid.kind = Gid::Kind::roce_v2;
  port.mtu = 4096;
  return RdmaDevice::open(verbs_.library, port);
}

ibv_mr* FakeMemory::add(ibv_pd* domain, void* address, std::size_t bytes, int access) {
  const std::lock_guard lock(mutex_);
  if (to_refuse_ > 0) {
    --to_refuse_;
    ++refused_;
    errno = refusal_;
    return nullptr;
  }
  if (bytes_ + bytes > limit_) {
    ++refused_;
    errno = ENOMEM;
    return nullptr;
  }
  auto region = std::make_unique<ibv_mr>();
  const std::uint32_t number = ++last_;
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = bytes;
  region->handle = number;
  region->lkey = kLocal + number * kStep;
  region->rkey = kRemote + number * kStep;
  ranges_[number] = {reinterpret_cast<std::uintptr_t>(address), bytes, access};
  bytes_ += bytes;
  return region.release();
}

int FakeMemory::remove(ibv_mr* region) {
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, window] : windows_) {
    if (window.pair != 0 && window.region == region->handle) return EBUSY;
  }
  const std::unique_ptr<ibv_mr> owner(region);
  bytes_ -= region->length;
  ranges_.erase(region->handle);
  return 0;
}

ibv_mw* FakeMemory::add_window(ibv_pd* domain) {
  const std::lock_guard lock(mutex_);
  auto window = std::make_unique<ibv_mw>();
  window->context = domain->context;
  window->pd = domain;
  window->type = IBV_MW_TYPE_2;
  window->handle = ++last_window_;
  window->rkey = kWindow + (window->handle << kVersionBits);
  windows_[window->handle].key = window->rkey;
  return window.release();
}

void FakeMemory::remove_window(ibv_mw* window) {
  const std::unique_ptr<ibv_mw> owner(window);
  const std::lock_guard lock(mutex_);
  windows_.erase(window->handle);
}

bool FakeMemory::open_window(std::uint32_t pair, std::uint32_t window, std::uint32_t key,
                             const ibv_mw_bind_info& info) {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(window);
  const auto region = ranges_.find(info.mr->handle);
  if (found == windows_.end() || found->second.pair != 0 || region == ranges_.end() ||
      (region->second.access & IBV_ACCESS_MW_BIND) == 0 ||
      !region->second.holds(info.addr, info.length) ||
      key >> kVersionBits != found->second.key >> kVersionBits || key == found->second.key) {
    return false;
  }
  found->second = {
      key, pair, info.mr->handle, {info.addr, info.length, static_cast<int>(info.mw_access_flags)}};
  return true;
}

bool FakeMemory::close_window(std::uint32_t pair, std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find((key - kWindow) >> kVersionBits);
  if (found == windows_.end() || found->second.pair != pair || found->second.key != key)
    return false;
  found->second.pair = 0;
  return true;
}

bool FakeMemory::has_open_window(std::uint32_t pair) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(windows_,
                             [&](const auto& entry) { return entry.second.pair == pair; });
}

std::optional<FakeMemory::Range> FakeMemory::writable_for(std::uint32_t pair,
                                                          std::uint32_t key) const {
  if (key < kWindow) {
    const auto range = with_remote_key(key);
    return range && (range->access & IBV_ACCESS_REMOTE_WRITE) != 0 ? range : std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find((key - kWindow) >> kVersionBits);
  if (found == windows_.end() || found->second.pair != pair || found->second.key != key)
    return std::nullopt;
  return found->second.range;
}

std::size_t FakeMemory::windows() const {
  const std::lock_guard lock(mutex_);
  return windows_.size();
}

std::optional<FakeMemory::Range> FakeMemory::with_number(std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(number);
  if (found == ranges_.end()) return std::nullopt;
  return found->second;
}

std::optional<FakeMemory::Range> FakeMemory::with_local_key(std::uint32_t key) const {
  if ((key - kLocal) % kStep != 0) return std::nullopt;
  return with_number((key - kLocal) / kStep);
}

std::optional<FakeMemory::Range> FakeMemory::with_remote_key(std::uint32_t key) const {
  if ((key - kRemote) % kStep != 0) return std::nullopt;
  return with_number((key - kRemote) / kStep);
}

std::size_t FakeMemory::count() const {
  const std::lock_guard lock(mutex_);
  return ranges_.size();
}

std::uint64_t FakeMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

int FakeMemory::made() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(last_);
}

void FakeMemory::limit(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
}

void FakeMemory::refuse(int times, int error) {
  const std::lock_guard lock(mutex_);
  to_refuse_ = times;
  refusal_ = error;
}

int FakeMemory::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

int FakeMemory::domains() const {
  const std::lock_guard lock(mutex_);
  return domains_;
}

void FakeMemory::count_domains(int change) {
  const std::lock_guard lock(mutex_);
  domains_ += change;
}

}  // namespace hccl::verbs::test
