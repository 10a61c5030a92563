// SPDX-License-Identifier: Apache-2.0
// The header that precedes a call's data on every connection of the call, and identifies the call.
// A receiver compares it with the header of its own call before accepting any data.
#pragma once

#include "base/error.h"
#include "call/collective_call.h"
#include "call/point_to_point.h"

#include <hccl_types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace hccl::planner {
struct Plan;
}

namespace hccl::network {

// Thrown if a peer's call differs from this rank's call. The text names the difference.
class CallMismatch : public Error {
 public:
  using Error::Error;
};

// Sent in this host's byte order, so `format` also differs if the peer's byte order does.
struct CallHeader {
  static constexpr std::uint32_t kFormat = 0x48434c33;

  // The messages that the header precedes: the data of the call, or the ranks' agreement on the
  // call.
  enum class Phase : std::uint8_t { data, agreement };

  std::uint32_t format = kFormat;
  std::uint8_t collective = 0;
  std::uint8_t type = 0;       // hcclDataType_t
  std::uint8_t operation = 0;  // hcclRedOp_t
  std::uint8_t algorithm = 0;  // index in the catalogue
  std::uint64_t number = 0;    // of the collective on its stream, or of the message on its link
  std::uint64_t count = 0;
  std::int32_t root = 0;
  std::uint8_t channels = 1;
  std::uint8_t pipeline = 1;
  Phase phase = Phase::data;
  // In a collective: whether all ranks must confirm the call at its end. A rank that receives this
  // flag sets it in the headers that it sends afterwards. In a message: whether the receiver must
  // answer. Not part of the call's identity.
  std::uint8_t confirm = 0;

  [[nodiscard]] std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(this, 1));
  }
  [[nodiscard]] static CallHeader from(std::span<const std::byte> bytes);
  // Return the header of a collective or of a message. `number` is the collective's number on its
  // stream.
  [[nodiscard]] static CallHeader of(const CollectiveCall& call, const planner::Plan& plan,
                                     std::uint64_t number);
  [[nodiscard]] static CallHeader of(const PointToPoint& call, bool wants_answer);
  // Returns the call, without the addresses of its buffers.
  [[nodiscard]] CollectiveCall call() const;
  // Returns whether both headers belong to the same phase of the same call.
  [[nodiscard]] bool is_same_call(CallHeader other) const {
    other.confirm = confirm;
    return *this == other;
  }

  friend bool operator==(const CallHeader&, const CallHeader&) = default;
};
static_assert(sizeof(CallHeader) == 32 && std::is_trivially_copyable_v<CallHeader>);
static_assert(std::has_unique_object_representations_v<CallHeader>);

// Returns the error text for two calls that do not match. The text names both ranks, the difference
// and the remedy.
[[nodiscard]] std::string why_unlike(int own_rank, const CallHeader& own, int peer,
                                     const CallHeader& theirs);

}  // namespace hccl::network
