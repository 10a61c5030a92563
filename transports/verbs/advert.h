// SPDX-License-Identifier: Apache-2.0
// Direct receives. A receiver advertises a registered destination for the stream's bytes from a
// given position on, and the sender writes them there instead of to the ring. Bytes that the sender
// wrote to the ring before it saw the advert stay in the ring. The sender writes all later bytes of
// the advertised range directly to the destination. One advert is open at a time. An advert closes
// when the receiver has consumed all bytes of its range, through the ring or directly.
#pragma once

#include "verbs/flow_control.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hccl::verbs {

struct Advert {
  std::uint64_t position = 0;  // stream position of the first byte
  std::uint64_t address = 0;   // the destination of the first byte
  std::uint32_t bytes = 0;
  std::uint32_t key = 0;

  friend bool operator==(const Advert&, const Advert&) = default;
};
static_assert(sizeof(Advert) == 24);  // this is the layout in the peer's memory

// Minimum size of an advertised destination. An advert costs about as much as copying this number
// of bytes.
constexpr std::size_t kLeastDirect = std::size_t{16} << 10;
// Number of slots for adverts in the sender's memory, used in rotation. Up to kMaxAdverts adverts
// can be in flight, because data from the ring may close an advert before the sender has read it.
constexpr std::uint32_t kAdvertSlots = 8;
constexpr std::uint32_t kMaxAdverts = 4;
// Number of requests that an advert takes: opening the window, the advert and closing the window.
constexpr std::uint32_t kAdvertRequests = 3;

// The sender's view of the latest advert.
class SenderView {
 public:
  void update(const Advert& advert) { advert_ = advert; }
  // Returns the number of bytes that may be written directly, starting at `position`, or 0 if the
  // ring must be used.
  [[nodiscard]] std::size_t direct_room(std::uint64_t position) const {
    if (position < advert_.position || position >= end()) return 0;
    return static_cast<std::size_t>(end() - position);
  }
  // Returns the destination of the byte at `position`. Requires direct_room(position) > 0.
  [[nodiscard]] std::uint64_t address(std::uint64_t position) const {
    return advert_.address + (position - advert_.position);
  }
  [[nodiscard]] std::uint32_t key() const { return advert_.key; }

 private:
  [[nodiscard]] std::uint64_t end() const { return advert_.position + advert_.bytes; }

  Advert advert_;
};

// The receiver's view of its latest advert.
class ReceiverView {
 public:
  [[nodiscard]] bool open() const { return left_ > 0; }
  void advertise(std::size_t bytes) {
    left_ = bytes;
    direct_ = 0;
    begun_ = false;
  }
  // Records `bytes` bytes that were written directly. `ring_arrived` and `ring_taken` are the
  // ring's counters at that time. Bytes that are in the ring at the first direct write precede the
  // bytes written directly. Returns false if no advert is open, or if the peer wrote more than was
  // advertised.
  [[nodiscard]] bool arrive(std::size_t bytes, std::uint64_t ring_arrived,
                            std::uint64_t ring_taken) {
    if (!begun_) {
      begun_ = true;
      ring_before_ = ring_arrived;
    }
    direct_ += bytes;
    return open() && direct_ + (ring_before_ - ring_taken) <= left_;
  }
  // Returns the number of bytes in the ring that precede the bytes written directly.
  [[nodiscard]] std::size_t ring_first(std::uint64_t ring_taken, std::size_t ring_holds) const {
    const std::size_t before =
        begun_ ? static_cast<std::size_t>(ring_before_ - ring_taken) : ring_holds;
    return std::min({before, ring_holds, left_});
  }
  // Returns the number of bytes that were written directly and have not been consumed.
  [[nodiscard]] std::size_t direct() const { return direct_; }
  // Counts `bytes` bytes as consumed: bytes written directly if `direct`, otherwise bytes in the
  // ring.
  void take(std::size_t bytes, bool direct) {
    left_ -= bytes;
    if (direct) direct_ -= bytes;
  }

 private:
  std::size_t left_ = 0;           // advertised bytes that have not been consumed
  std::size_t direct_ = 0;         // bytes written directly that have not been consumed
  bool begun_ = false;             // whether any byte was written directly
  std::uint64_t ring_before_ = 0;  // end of the bytes in the ring that precede the direct bytes
};

}  // namespace hccl::verbs
