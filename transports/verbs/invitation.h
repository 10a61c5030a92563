// SPDX-License-Identifier: Apache-2.0
// A receiver's offer of memory that bytes of the stream may be written to without a detour: those
// from a position on. Bytes that have been sent through the ring by the time it comes stay there;
// from then on, until the last of these bytes, all go straight. One is open at a time, and it is
// closed when the receiver has got all of its bytes, by whichever way.
#pragma once

#include "verbs/windows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hccl::verbs {

struct Invitation {
  std::uint64_t position = 0;  // of the first byte in the stream
  std::uint64_t address = 0;   // where it goes
  std::uint32_t bytes = 0;
  std::uint32_t key = 0;

  friend bool operator==(const Invitation&, const Invitation&) = default;
};
static_assert(sizeof(Invitation) == 24);  // as it is written to the peer's memory

// The least size for which an invitation is sent: its message costs as much as copying this many
// bytes.
constexpr std::size_t kWorthInviting = std::size_t{16} << 10;
// Places for invitations in the memory of an end; they are used in turn. More than one can be under
// way: while the sender has not looked, another may follow one that the ring has served.
constexpr std::uint32_t kInvitationPlaces = 8;
constexpr std::uint32_t kMostInvitations = 4;

// The sender's view of the last invitation.
class Guest {
 public:
  void invite(const Invitation& invitation) { invitation_ = invitation; }
  // How many of the bytes from `position` on may be written straight; none: use the ring.
  [[nodiscard]] std::size_t welcome(std::uint64_t position) const {
    if (position < invitation_.position || position >= end()) return 0;
    return static_cast<std::size_t>(end() - position);
  }
  // Where the byte at a position that is welcome goes.
  [[nodiscard]] std::uint64_t address(std::uint64_t position) const {
    return invitation_.address + (position - invitation_.position);
  }
  [[nodiscard]] std::uint32_t key() const { return invitation_.key; }

 private:
  [[nodiscard]] std::uint64_t end() const { return invitation_.position + invitation_.bytes; }

  Invitation invitation_;
};

// The receiver's view of the one it has sent.
class Host {
 public:
  [[nodiscard]] bool open() const { return left_ > 0; }
  void invite(std::size_t bytes) {
    left_ = bytes;
    straight_ = 0;
    begun_ = false;
  }
  // Accounts for bytes that came straight while the ring stood at `ring_arrived` and `ring_taken`.
  // Returns false if they were not invited.
  [[nodiscard]] bool arrive(std::size_t bytes, std::uint64_t ring_arrived,
                            std::uint64_t ring_taken) {
    if (!begun_) {
      begun_ = true;
      through_ring_ = ring_arrived;
    }
    straight_ += bytes;
    return open() && straight_ + (through_ring_ - ring_taken) <= left_;
  }
  // How many of the bytes that the ring holds come before those that came straight.
  [[nodiscard]] std::size_t ring_first(std::uint64_t ring_taken, std::size_t ring_holds) const {
    const std::size_t before =
        begun_ ? static_cast<std::size_t>(through_ring_ - ring_taken) : ring_holds;
    return std::min({before, ring_holds, left_});
  }
  [[nodiscard]] std::size_t straight() const { return straight_; }
  void take(std::size_t bytes, bool straight) {
    left_ -= bytes;
    if (straight) straight_ -= bytes;
  }

 private:
  std::size_t left_ = 0;            // of the invited bytes, not taken yet
  std::size_t straight_ = 0;        // that have come straight and are not taken
  bool begun_ = false;              // some have come straight
  std::uint64_t through_ring_ = 0;  // those of the ring up to here come before them
};

}  // namespace hccl::verbs
