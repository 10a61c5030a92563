// SPDX-License-Identifier: Apache-2.0
// Each ring has one producer and one consumer. An end stores `sent` and `released` with seq_cst,
// and the other end's acquire loads synchronise with these stores. Because of seq_cst, each store
// also precedes the following load of the other end's `wanted`. Likewise, an end that goes to sleep
// stores `wanted` before it loads `sent` and `released` once more. So no wake-up is lost.
#include "shm/shm_endpoint.h"

#include "base/peer_process.h"
#include "base/retry.h"
#include "base/text.h"
#include "shm/unix_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>

namespace hccl::shm {
namespace {

using transport::Interest;
using transport::PeerLost;
using transport::SleepPlan;

// A send is published in slices of this size, so that the peer copies data out of the ring while
// this end copies more in.
constexpr std::size_t kSlice = std::size_t{32} << 10;
// Minimum room, in bytes, at which a sleeping sender is woken.
constexpr std::size_t kWorthwhileRoom = Segment::kRingBytes / 4;
// Calls without progress between checks of the peer. The checks are rare, because each takes system
// calls.
constexpr std::uint32_t kIdleCalls = 1024;
constexpr std::chrono::milliseconds kNoRoomPause{5};

}  // namespace

ShmEndpoint::ShmEndpoint(int own, int peer,
                         std::unique_ptr<transport::ConnectionAttempt> connecting)
    : Endpoint(peer, "shm"),
      own_(own),
      attempt_(std::move(connecting)),
      own_side_(own < peer ? 0 : 1) {}

bool ShmEndpoint::establish() {
  if (segment_) return true;
  throw_if_lost();
  if (!socket_.valid()) {
    auto connected = attempt_->poll();
    if (!connected) return false;
    socket_ = std::move(connected->socket);
    process_ = peer_process(socket_.get());
    if (own_side_ == 1) file_ = Segment::create();
  }
  exchange_segment();
  return segment_.has_value();
}

void ShmEndpoint::exchange_segment() {
  if (own_side_ == 1) {
    if (send_file(socket_.get(), file_)) {
      adopt(file_, own_);
      file_.reset();
    } else if (errno != EAGAIN && errno != EINTR && errno != ETOOMANYREFS &&
               !is_memory_shortage(errno)) {
      mark_lost("has closed the connection or exited");
      throw_if_lost();
    }
    return;
  }
  FileDescriptor file;
  const Arrival arrival = receive_file(socket_.get(), file);
  if (arrival == Arrival::arrived && file.valid()) {
    adopt(file, peer());
  } else if (arrival != Arrival::none_yet) {
    mark_lost(arrival == Arrival::closed
                  ? "has closed the connection or exited"
                  : "has sent no shared memory: it may have run out of file descriptors");
    throw_if_lost();
  }
}

void ShmEndpoint::adopt(const FileDescriptor& file, int maker) {
  segment_.emplace(file, text("rank ", maker));
  Header& header = segment_->header();
  mine_ = &header.sides[own_side_];
  theirs_ = &header.sides[1 - own_side_];
  my_sleep_ = &header.sleepers[own_side_];
  their_sleep_ = &header.sleepers[1 - own_side_];
}

void ShmEndpoint::mark_lost(const char* what) noexcept {
  if (lost_ == nullptr) lost_ = what;
}

void ShmEndpoint::throw_if_lost() const {
  if (lost_ == nullptr) return;
  throw PeerLost(peer(), text("rank ", own_, " has lost rank ", peer(),
                              " (shared memory): the process ", lost_, "; see that rank's output"));
}

void ShmEndpoint::check_peer() noexcept {
  std::array<std::byte, 64> rings{};
  ssize_t count = 0;
  do {
    count = recv(socket_.get(), rings.data(), rings.size(), MSG_DONTWAIT);
  } while (count > 0 || (count < 0 && errno == EINTR));
  const bool closed = count == 0 || errno != EAGAIN;
  if (has_exited(process_)) return mark_lost("has ended");
  if (closed) mark_lost("has closed the connection or exited");
}

void ShmEndpoint::check_idle_peer() {
  if (++idle_ % kIdleCalls == 0 && lost_ == nullptr) check_peer();
}

void ShmEndpoint::wake_peer(std::uint32_t wanted) {
  if ((their_sleep_->wanted.load(std::memory_order_seq_cst) & wanted) == 0) return;
  if (their_sleep_->wanted.exchange(0, std::memory_order_seq_cst) == 0) return;
  // If the socket is full, a wake-up is already pending; if it is closed, no peer sleeps.
  const std::byte ring{1};
  retried([&] { return send(socket_.get(), &ring, 1, MSG_NOSIGNAL | MSG_DONTWAIT); });
}

// Returns `in_ring` if it is at most kRingBytes; otherwise throws Error(hcclInternalError). The
// peer may have written any value to shared memory.
std::size_t ShmEndpoint::checked(std::uint64_t in_ring) const {
  if (in_ring <= Segment::kRingBytes) return static_cast<std::size_t>(in_ring);
  throw Error(hcclInternalError,
              text("rank ", peer(), " has overwritten the memory it shares with rank ", own_,
                   "; look for stray writes in that process"));
}

std::size_t ShmEndpoint::room() const {
  return Segment::kRingBytes - checked(sent_ - known_released_);
}

std::size_t ShmEndpoint::copy_in(std::span<const std::byte> bytes) {
  if (room() < bytes.size()) known_released_ = theirs_->released.load(std::memory_order_acquire);
  const std::size_t count = std::min({bytes.size(), room(), kSlice});
  if (count > 0) std::memcpy(segment_->at(own_side_, sent_), bytes.data(), count);
  sent_ += count;
  return count;
}

// Makes the bytes that were copied into the ring visible to the peer. If they fit into `small` and
// the peer has released all earlier bytes, also copies them into the cache line of `sent`.
void ShmEndpoint::publish() {
  const std::uint64_t begin = mine_->sent.load(std::memory_order_relaxed);
  const auto count = static_cast<std::size_t>(sent_ - begin);
  if (count == 0) return;
  if (count <= mine_->small.size()) {
    known_released_ = theirs_->released.load(std::memory_order_acquire);
    if (known_released_ == begin) {
      std::memcpy(mine_->small.data(), segment_->at(own_side_, begin), count);
      mine_->small_place = begin * kSmallUnit + count;
    }
  }
  mine_->sent.store(sent_, std::memory_order_seq_cst);
  wake_peer(bytes_wanted);
}

std::size_t ShmEndpoint::try_send_parts(std::span<const std::span<const std::byte>> parts) {
  throw_if_lost();
  if (!establish()) return 0;
  const std::uint64_t before = sent_;
  std::size_t offered = 0;
  for (auto part : parts) {
    offered += part.size();
    while (!part.empty()) {
      const std::size_t count = copy_in(part);
      if (count == 0) break;
      part = part.subspan(count);
      if (sent_ - mine_->sent.load(std::memory_order_relaxed) >= kSlice) publish();
    }
    if (!part.empty()) break;
  }
  publish();
  if (sent_ == before && offered > 0) {
    check_idle_peer();
    throw_if_lost();
  }
  return count_sent(static_cast<std::size_t>(sent_ - before));
}

std::size_t ShmEndpoint::arrived() const {
  return checked(theirs_->sent.load(std::memory_order_acquire) - position_);
}

// Returns the address of the first `count` unreleased bytes.
const std::byte* ShmEndpoint::arrived_bytes(std::size_t count) const {
  if (count <= theirs_->small.size()) {
    const std::uint64_t begin = theirs_->small_place / kSmallUnit;
    const std::uint64_t end = begin + theirs_->small_place % kSmallUnit;
    if (position_ >= begin && position_ + count <= end) {
      return theirs_->small.data() + (position_ - begin);
    }
  }
  return segment_->at(1 - own_side_, position_);
}

std::span<const std::byte> ShmEndpoint::try_receive(std::size_t most) {
  if (!establish()) return {};
  const auto known = static_cast<std::size_t>(seen_ - position_);
  std::size_t count = std::min(most, arrived());
  if (count <= known && count < most) {
    check_idle_peer();
    count = std::min(most, arrived());  // data may have arrived just before the peer ended
    if (count <= known) throw_if_lost();
  }
  if (count == 0) return {};
  seen_ = std::max(seen_, position_ + count);
  return {arrived_bytes(count), count};
}

void ShmEndpoint::release(std::size_t count) {
  count = std::min(count, static_cast<std::size_t>(seen_ - position_));
  if (count == 0) return;
  position_ += count_received(count);
  mine_->released.store(position_, std::memory_order_seq_cst);
  const std::uint64_t used = theirs_->sent.load(std::memory_order_relaxed) - position_;
  if (used + kWorthwhileRoom <= Segment::kRingBytes) wake_peer(room_wanted);
}

std::size_t ShmEndpoint::try_receive_into(std::span<std::byte> destination) {
  return copy_lent(destination, kSlice);
}

bool ShmEndpoint::begin_sleep(Interest interest, SleepPlan& plan) {
  if (lost_ != nullptr) return false;
  if (!socket_.valid()) {
    attempt_->plan_sleep(plan);
    return true;
  }
  plan.descriptors.push_back({socket_.get(), POLLIN, 0});
  if (!segment_) {
    if (own_side_ == 1) plan.at_most = std::min<Deadline::Duration>(plan.at_most, kNoRoomPause);
    return true;
  }
  if (process_.valid()) plan.descriptors.push_back({process_.get(), POLLIN, 0});
  my_sleep_->wanted.store(
      (interest.readable ? bytes_wanted : 0U) | (interest.writable ? room_wanted : 0U),
      std::memory_order_seq_cst);
  const bool readable = interest.readable && theirs_->sent.load(std::memory_order_seq_cst) > seen_;
  const bool writable =
      interest.writable &&
      sent_ - theirs_->released.load(std::memory_order_seq_cst) + kWorthwhileRoom <=
          Segment::kRingBytes;
  if (!readable && !writable) return true;
  my_sleep_->wanted.store(0, std::memory_order_relaxed);
  return false;
}

void ShmEndpoint::end_sleep() noexcept {
  if (!segment_) return;
  my_sleep_->wanted.store(0, std::memory_order_relaxed);
  check_peer();
}

}  // namespace hccl::shm
