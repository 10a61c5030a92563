// SPDX-License-Identifier: Apache-2.0
// Divides the reads and writes that a collective cannot avoid into tiles, which threads claim.
#include "floor.h"

#include "floor_kernel.h"
#include "shape.h"

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>

#include <sched.h>

namespace peers {
namespace {

constexpr std::array<std::size_t, 3> kTileBytes = {std::size_t{16} << 10, std::size_t{64} << 10,
                                                   std::size_t{256} << 10};
constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;

std::vector<const float*> all(const std::vector<Buffer>& buffers, std::size_t offset) {
  std::vector<const float*> addresses;
  addresses.reserve(buffers.size());
  for (const Buffer& buffer : buffers) addresses.push_back(buffer.get() + offset);
  return addresses;
}

std::vector<float*> all_but(const std::vector<Buffer>& buffers, int left_out, std::size_t offset) {
  std::vector<float*> addresses;
  addresses.reserve(buffers.size());
  for (std::size_t rank = 0; rank < buffers.size(); ++rank)
    if (static_cast<int>(rank) != left_out) addresses.push_back(buffers[rank].get() + offset);
  return addresses;
}

}  // namespace

Buffer::Buffer(std::size_t count, std::size_t first_line)
    : memory_(count + 2 * kPage / sizeof(float), 0.0F) {
  void* start = memory_.data();
  std::size_t space = memory_.size() * sizeof(float);
  std::align(kPage, kPage, start, space);
  start_ = static_cast<float*>(start) + first_line % (kPage / kLine) * kLine / sizeof(float);
}

void Floor::prepare(const Command& command, bool known_inputs) {
  const std::size_t variants = 2 * kTileBytes.size();
  const auto variant = static_cast<std::size_t>(command.variant);
  if (variant >= variants)
    throw std::runtime_error("variant must be between 0 and " + std::to_string(variants - 1));
  tile_ = kTileBytes[variant % kTileBytes.size()] / sizeof(float);
  const std::size_t count = buffer_count(shape_of(command, 0, ranks_));
  allocate(count);
  if (known_inputs) {
    fill(command);
  } else {
    for (std::size_t rank = 0; rank < send_.size(); ++rank) {
      fill_for_timing(command, static_cast<int>(rank), {send_[rank].get(), count});
      fill_for_timing(command, static_cast<int>(rank), {recv_[rank].get(), count});
    }
  }
  make_segments(command);
  streaming_ = variant >= kTileBytes.size() && can_stream();
  reset();
}

void Floor::allocate(std::size_t count) {
  if (count <= capacity_ && !send_.empty()) return;
  send_.clear();
  recv_.clear();
  capacity_ = count;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks_); ++rank) {
    send_.emplace_back(count, 10 * rank);
    recv_.emplace_back(count, 10 * rank + 5);
  }
}

void Floor::reset() {
  next_.value.store(0, std::memory_order_relaxed);
  done_.value.store(0, std::memory_order_relaxed);
}

void Floor::work(std::uint64_t iterations) {
  const std::uint64_t per_operation = tiles_per_segment_ * segments_.size();
  const std::uint64_t total = per_operation * iterations;  // 0 if no bytes are moved
  for (;;) {
    const std::uint64_t ticket = next_.value.fetch_add(1, std::memory_order_relaxed);
    if (ticket >= total) break;
    wait_until_done(ticket / per_operation * per_operation);
    run_tile(ticket % per_operation);
    done_.value.fetch_add(1, std::memory_order_release);
  }
  wait_until_done(total);
}

std::uint64_t Floor::wrong(const Command& command) const {
  std::uint64_t wrong = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Shape shape = shape_of(command, rank, ranks_);
    const bool inside = command.in_place && command.collective == Collective::reduce_scatter;
    const float* output =
        recv_[static_cast<std::size_t>(rank)].get() + (inside ? shape.in_place_offset : 0);
    wrong += count_wrong(command, rank, ranks_, {output, shape.recv_count});
  }
  return wrong;
}

void Floor::fill(const Command& command) {
  for (const Buffer& buffer : recv_) std::fill_n(buffer.get(), capacity_, kPoison);
  for (int rank = 0; rank < ranks_; ++rank) {
    const Shape shape = shape_of(command, rank, ranks_);
    const std::vector<float> input = make_input(shape, rank);
    const bool inside = command.in_place && command.collective == Collective::all_gather;
    const Buffer& buffer = inputs(command)[static_cast<std::size_t>(rank)];
    std::copy(input.begin(), input.end(), buffer.get() + (inside ? shape.in_place_offset : 0));
  }
}

const std::vector<Buffer>& Floor::inputs(const Command& command) const {
  const bool exchanges = command.collective == Collective::all_to_all ||
                         command.collective == Collective::send_receive;
  return command.in_place && !exchanges ? recv_ : send_;
}

// Adds segments that copy part `to` of rank `from`'s input to part `from` of rank `to`'s output.
void Floor::add_exchange(const std::vector<Buffer>& in, std::size_t part) {
  const auto ranks = static_cast<std::size_t>(ranks_);
  for (std::size_t from = 0; from < ranks; ++from)
    for (std::size_t to = 0; to < ranks; ++to)
      segments_.push_back({{in[from].get() + to * part}, {recv_[to].get() + from * part}, part});
}

void Floor::make_segments(const Command& command) {
  const std::size_t count = shape_of(command, 0, ranks_).call_count;
  const std::vector<Buffer>& in = inputs(command);
  segments_.clear();
  switch (command.collective) {
    case Collective::all_reduce:
      segments_.push_back({all(in, 0), all_but(recv_, ranks_, 0), count});
      break;
    case Collective::broadcast:
      segments_.push_back({{in[0].get()}, all_but(recv_, command.in_place ? 0 : ranks_, 0), count});
      break;
    case Collective::all_gather:
      for (int rank = 0; rank < ranks_; ++rank) {
        const std::size_t part = static_cast<std::size_t>(rank) * count;
        const float* source =
            in[static_cast<std::size_t>(rank)].get() + (command.in_place ? part : 0);
        segments_.push_back(
            {{source}, all_but(recv_, command.in_place ? rank : ranks_, part), count});
      }
      break;
    case Collective::reduce_scatter:
      for (int rank = 0; rank < ranks_; ++rank) {
        const std::size_t part = static_cast<std::size_t>(rank) * count;
        float* destination =
            recv_[static_cast<std::size_t>(rank)].get() + (command.in_place ? part : 0);
        segments_.push_back({all(in, part), {destination}, count});
      }
      break;
    case Collective::reduce:
      segments_.push_back({all(in, 0), {recv_[0].get()}, count});
      break;
    case Collective::all_to_all:
      add_exchange(in, count);
      break;
    case Collective::send_receive:
      for (int rank = 0; rank < ranks_; ++rank) {
        segments_.push_back({{in[static_cast<std::size_t>(rank)].get()},
                             {recv_[static_cast<std::size_t>((rank + 1) % ranks_)].get()},
                             count});
      }
      break;
    case Collective::barrier:
      break;
  }
  tiles_per_segment_ = (count + tile_ - 1) / tile_;
}

// Returns whether every tile starts at a cache line, which streaming stores require.
bool Floor::can_stream() const {
  return segments_.size() <= 1 || segments_[0].count * sizeof(float) % kLine == 0;
}

void Floor::run_tile(std::uint64_t tile) {
  const Segment& segment = segments_[tile / tiles_per_segment_];
  const std::size_t first = tile % tiles_per_segment_ * tile_;
  sum_to_all(segment.sources, segment.destinations, first, std::min(tile_, segment.count - first),
             streaming_);
}

void Floor::wait_until_done(std::uint64_t tiles) const {
  for (int spins = 0; done_.value.load(std::memory_order_acquire) < tiles; ++spins)
    if (spins > 1000) sched_yield();
}

}  // namespace peers
