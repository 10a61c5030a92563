// SPDX-License-Identifier: Apache-2.0
// Direct receives. A receiver advertises a registered destination for the bytes of the stream from
// a position on, and the sender writes them there instead of into the ring. Bytes that were sent
// through the ring before the sender saw the advert stay in the ring; all later bytes of the
// advertised range go direct. One advert is open at a time. It closes when the receiver has
// consumed all of its bytes, whichever path they took.
#pragma once

#include "verbs/flow_control.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hccl::verbs {

struct Advert {
  std::uint64_t position = 0;  // in the stream, of the first byte
  std::uint64_t address = 0;   // its destination
  std::uint32_t bytes = 0;
  std::uint32_t key = 0;

  friend bool operator==(const Advert&, const Advert&) = default;
};
static_assert(sizeof(Advert) == 24);  // this is the layout in the peer's memory

// Minimum size of an advertised destination: an advert costs as much as copying this many bytes.
constexpr std::size_t kLeastDirect = std::size_t{16} << 10;
// Slots for adverts in the sender's memory, used in turn. Several adverts can be in flight: data
// from the ring may close the first before the sender has polled for it.
constexpr std::uint32_t kAdvertSlots = 8;
constexpr std::uint32_t kMaxAdverts = 4;

// The sender's view of the latest advert.
class SenderView {
 public:
  void update(const Advert& advert) { advert_ = advert; }
  // Returns how many of the bytes from `position` on may be written direct; 0 means use the ring.
  [[nodiscard]] std::size_t direct_room(std::uint64_t position) const {
    if (position < advert_.position || position >= end()) return 0;
    return static_cast<std::size_t>(end() - position);
  }
  // Returns the destination of the byte at `position`, for which direct_room() is not 0.
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
  // Records `bytes` that were written direct. `ring_arrived` and `ring_taken` are the ring's
  // counters at that moment: bytes that are in the ring then precede these. Returns false if the
  // peer wrote more than was advertised.
  [[nodiscard]] bool arrive(std::size_t bytes, std::uint64_t ring_arrived,
                            std::uint64_t ring_taken) {
    if (!begun_) {
      begun_ = true;
      ring_before_ = ring_arrived;
    }
    direct_ += bytes;
    return open() && direct_ + (ring_before_ - ring_taken) <= left_;
  }
  // Returns how many bytes in the ring precede those that were written direct.
  [[nodiscard]] std::size_t ring_first(std::uint64_t ring_taken, std::size_t ring_holds) const {
    const std::size_t before =
        begun_ ? static_cast<std::size_t>(ring_before_ - ring_taken) : ring_holds;
    return std::min({before, ring_holds, left_});
  }
  // Returns the bytes that were written direct and are not consumed yet.
  [[nodiscard]] std::size_t direct() const { return direct_; }
  // Consumes bytes, from the ring or from those written direct.
  void take(std::size_t bytes, bool direct) {
    left_ -= bytes;
    if (direct) direct_ -= bytes;
  }

 private:
  std::size_t left_ = 0;           // advertised bytes that are not consumed yet
  std::size_t direct_ = 0;         // bytes written direct and not consumed yet
  bool begun_ = false;             // whether any byte was written direct
  std::uint64_t ring_before_ = 0;  // bytes of the ring before this position precede them
};

}  // namespace hccl::verbs
