// SPDX-License-Identifier: Apache-2.0
// Sends and receives at random at one end of a stream. Sends from registered and unregistered
// memory. Borrows received bytes or has them stored in a destination. Each byte of a stream is
// computed from its position.
#pragma once

#include "verbs/registration_cache.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace hccl::verbs::test {

// Fills `bytes` with the bytes of stream number `stream`, starting at `position`.
inline void fill(std::span<std::byte> bytes, std::uint64_t stream, std::uint64_t position) {
  for (std::size_t i = 0; i < bytes.size();) {
    const std::uint64_t at = position + i;
    std::uint64_t word = (stream + 1) * 0x9e3779b97f4a7c15U + at / 8;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9U;
    word ^= word >> 27;
    const std::size_t skip = at % 8;
    const std::size_t count = std::min<std::size_t>(8 - skip, bytes.size() - i);
    std::memcpy(&bytes[i], std::as_bytes(std::span(&word, 1)).data() + skip, count);
    i += count;
  }
}

// Memory for registration. Its size and its file offset are not multiples of a granule.
class ProgramMemory {
 public:
  static constexpr int kFile = 5;
  static constexpr std::uint64_t kOffset = (std::uint64_t{3} << 20) + 4096;
  static constexpr std::size_t kBytes = std::size_t{11} << 20;

  ProgramMemory() {
    void* const got =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(got, MAP_FAILED);
    data_ = static_cast<std::byte*>(got);
  }
  ~ProgramMemory() { munmap(data_, kBytes); }
  ProgramMemory(const ProgramMemory&) = delete;
  ProgramMemory& operator=(const ProgramMemory&) = delete;

  [[nodiscard]] transport::Region region() const { return {data_, kBytes, kFile, kOffset}; }
  [[nodiscard]] std::span<std::byte> all() const { return {data_, kBytes}; }

 private:
  std::byte* data_ = nullptr;
};

template <class End>
class StreamDriver {
 public:
  // `out` and `in` are the numbers of the outgoing and the incoming stream, each of `total` bytes.
  StreamDriver(End& end, std::uint64_t seed, std::uint64_t out, std::uint64_t in,
               std::uint64_t total)
      : end_(end), random_(seed), out_(out), in_(in), total_(total) {}

  [[nodiscard]] const ProgramMemory& memory() const { return memory_; }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] bool has_sent_all() const { return sent_ == total_; }
  [[nodiscard]] bool has_received_all() const { return received_ == total_; }
  [[nodiscard]] bool done() const { return has_sent_all() && has_received_all(); }
  // Returns whether the next piece needs memory that earlier sends may still read.
  [[nodiscard]] bool needs_flush() const { return needs_flush_; }
  // Returns whether no transfer to or from the program's memory is in flight.
  [[nodiscard]] bool is_quiet() { return destination_.empty() && end_.flushed(); }

  // Sends the rest of the current piece, or a new random piece. Returns true if the end has taken
  // the whole piece, or if nothing is left to send.
  bool send_some() {
    if (has_sent_all()) return true;
    if (piece_.empty()) prepare_piece();
    needs_flush_ = piece_.empty();
    if (needs_flush_) return false;
    const std::array<std::size_t, 2> cuts = cut(piece_.size());
    const std::array<std::span<const std::byte>, 3> parts{
        piece_.first(cuts[0]), piece_.subspan(cuts[0], cuts[1] - cuts[0]), piece_.subspan(cuts[1])};
    const std::size_t taken = end_.send(parts);
    EXPECT_LE(taken, piece_.size());
    // The end has copied the bytes that it took from unregistered memory, so the piece may change.
    if (!piece_stays_) std::ranges::fill(piece_.first(taken), std::byte{0x5A});
    piece_ = piece_.subspan(taken);
    sent_ += taken;
    return piece_.empty();
  }

  // Borrows bytes or receives into the destination. Returns true if all requested bytes have
  // arrived, or if nothing is left to receive.
  bool receive_some() {
    if (has_received_all()) return true;
    if (destination_.empty() && random_() % 3 == 0) return borrow();
    if (destination_.empty()) prepare_destination();
    const std::size_t taken = end_.take(destination_.subspan(taken_));
    EXPECT_LE(taken, destination_.size() - taken_);
    taken_ += taken;
    if (taken_ < destination_.size()) return false;
    check(destination_, received_);
    received_ += destination_.size();
    EXPECT_TRUE(is_poison(before_) && is_poison(behind_))
        << "bytes were stored outside the destination";
    destination_ = {};
    return true;
  }

 private:
  static constexpr std::byte kPoison{0xA5};
  static constexpr std::size_t kGuard = 64;
  // The first half of the memory is for outgoing data, the second half for incoming data.
  static constexpr std::size_t kOutgoing = ProgramMemory::kBytes / 2;

  [[nodiscard]] std::size_t some_size(std::uint64_t left) {
    const auto most =
        std::array<std::uint64_t, 5>{200, 20'000, 50'000, 300'000, 1'500'000}.at(random_() % 5);
    return static_cast<std::size_t>(std::min<std::uint64_t>(left, 1 + random_() % most));
  }
  [[nodiscard]] std::array<std::size_t, 2> cut(std::size_t size) {
    std::array<std::size_t, 2> cuts{random_() % (size + 1), random_() % (size + 1)};
    std::ranges::sort(cuts);
    return cuts;
  }

  void prepare_piece() {
    const std::size_t size = some_size(total_ - sent_);
    piece_stays_ = random_() % 3 > 0;
    if (!piece_stays_) {
      scratch_.resize(size);
      piece_ = scratch_;
    } else {
      if (used_ + size > kOutgoing || random_() % 8 == 0) reuse();
      if (used_ + size > kOutgoing) return;
      piece_ = memory_.all().subspan(used_, size);
      used_ += size;
    }
    fill(piece_, out_, sent_);
  }
  void reuse() {
    if (!end_.flushed()) return;
    std::ranges::fill(memory_.all().first(used_), std::byte{0x33});
    used_ = 0;
  }

  void prepare_destination() {
    const std::size_t size = some_size(total_ - received_);
    std::span<std::byte> around;
    if (random_() % 4 == 0) {
      landing_.resize(size + 2 * kGuard);
      around = landing_;
    } else {
      const std::size_t room = ProgramMemory::kBytes - kOutgoing - size - 2 * kGuard;
      around = memory_.all().subspan(kOutgoing + random_() % room, size + 2 * kGuard);
    }
    std::ranges::fill(around, kPoison);
    before_ = around.first(kGuard);
    destination_ = around.subspan(kGuard, size);
    behind_ = around.last(kGuard);
    taken_ = 0;
  }
  [[nodiscard]] static bool is_poison(std::span<const std::byte> bytes) {
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == kPoison; });
  }

  bool borrow() {
    const std::size_t most = some_size(total_ - received_);
    const auto view = end_.lend(most);
    EXPECT_LE(view.size(), most);
    check(view, received_);
    const std::size_t count = random_() % 2 == 0 ? view.size() : random_() % (view.size() + 1);
    end_.release(count);
    received_ += count;
    return view.size() == most;
  }

  void check(std::span<const std::byte> bytes, std::uint64_t position) {
    expected_.resize(bytes.size());
    fill(expected_, in_, position);
    if (bytes.empty() || std::memcmp(bytes.data(), expected_.data(), bytes.size()) == 0) return;
    ADD_FAILURE() << "stream " << in_ << " is wrong at byte "
                  << position + static_cast<std::uint64_t>(
                                    std::ranges::mismatch(bytes, expected_).in1 - bytes.begin());
  }

  End& end_;
  std::mt19937_64 random_;
  std::uint64_t out_;
  std::uint64_t in_;
  std::uint64_t total_;
  ProgramMemory memory_;

  std::uint64_t sent_ = 0;
  std::span<std::byte> piece_;  // the unsent rest of the piece
  bool piece_stays_ = false;    // the piece must stay unchanged until the end is flushed
  bool needs_flush_ = false;
  std::size_t used_ = 0;  // bytes of the memory that sends have used
  std::vector<std::byte> scratch_;

  std::uint64_t received_ = 0;
  std::span<std::byte> destination_;
  std::size_t taken_ = 0;
  std::span<std::byte> before_;
  std::span<std::byte> behind_;
  std::vector<std::byte> landing_;
  std::vector<std::byte> expected_;
};

}  // namespace hccl::verbs::test
