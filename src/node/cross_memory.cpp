// SPDX-License-Identifier: Apache-2.0
#include "node/cross_memory.h"

#include "base/secret.h"
#include "node/kernel_copies.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <sys/uio.h>

namespace hccl::node {
namespace {

// A copy checks for a fault before each piece of this size.
constexpr std::uint64_t kPieceBytes = 1 << 20;

std::uint64_t random_tag() {
  const Secret random = random_secret();
  std::uint64_t tag = 0;
  static_assert(sizeof(tag) <= sizeof(random));
  std::memcpy(&tag, &random, sizeof(tag));
  return tag;
}

iovec span_at(std::uint64_t address, std::uint64_t bytes) {
  return {reinterpret_cast<void*>(address), bytes};
}

}  // namespace

CrossMemory::CrossMemory(ControlBlock control, int rank, std::vector<int> pids, DirectReads reads)
    : control_(control),
      fault_(control),
      rank_(rank),
      pids_(std::move(pids)),
      reads_(reads),
      tag_(random_tag()) {
  if (reads_ == DirectReads::never) return;
  RankRecord& own = record(rank_);
  own.tag = tag_;
  own.tag_address.store(reinterpret_cast<std::uint64_t>(&tag_), std::memory_order_release);
}

CrossMemory::~CrossMemory() { record(rank_).tag_address.store(0, std::memory_order_relaxed); }

bool CrossMemory::can_read(int peer) {
  if ((record(rank_).readable.load(std::memory_order_relaxed) & bit(peer)) != 0) return true;
  if (reads_ == DirectReads::never ||
      (unreadable_.load(std::memory_order_relaxed) & bit(peer)) != 0)
    return false;
  // A peer that has not joined yet has no tag, and may be readable later.
  if (record(peer).tag_address.load(std::memory_order_acquire) == 0) return false;
  const bool readable =
      pids_[static_cast<std::size_t>(peer)] != 0 && read_piece(peer, nullptr, 0, 0);
  (readable ? record(rank_).readable : unreadable_).fetch_or(bit(peer), std::memory_order_relaxed);
  return readable;
}

bool CrossMemory::can_read_all() {
  for (int peer = 0; peer < static_cast<int>(pids_.size()); ++peer) {
    if (peer != rank_ && !can_read(peer)) return false;
  }
  return true;
}

bool CrossMemory::prefers_staging() const {
  return reads_ == DirectReads::rarely ||
         (reads_ == DirectReads::if_faster && kernel_copies_slowly());
}

bool CrossMemory::read(int peer, std::byte* to, std::uint64_t address, std::uint64_t bytes) {
  for (std::uint64_t done = 0; done < bytes; done += kPieceBytes) {
    if (fault_.raised()) fault_.throw_error();
    if (read_piece(peer, to + done, address + done, std::min(kPieceBytes, bytes - done))) continue;
    unreadable_.fetch_or(bit(peer), std::memory_order_relaxed);
    record(rank_).readable.fetch_and(~bit(peer), std::memory_order_relaxed);
    return false;
  }
  // If the communicator has failed, the peer's program may have reused the memory before this copy
  // read it.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (fault_.raised()) fault_.throw_error();
  return true;
}

// Reads the data and the tag in one system call, so that both come from the same process.
bool CrossMemory::read_piece(int peer, std::byte* to, std::uint64_t address,
                             std::uint64_t bytes) const {
  std::uint64_t tag = 0;
  const std::array local{iovec{to, bytes}, iovec{&tag, sizeof(tag)}};
  const std::array remote{
      span_at(address, bytes),
      span_at(record(peer).tag_address.load(std::memory_order_acquire), sizeof(tag))};
  const ssize_t copied = process_vm_readv(pids_[static_cast<std::size_t>(peer)], local.data(),
                                          local.size(), remote.data(), remote.size(), 0);
  return copied == static_cast<ssize_t>(bytes + sizeof(tag)) && tag == record(peer).tag;
}

}  // namespace hccl::node
