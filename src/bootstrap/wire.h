// SPDX-License-Identifier: Apache-2.0
// How bytes travel between ranks: frames of a checked header and a payload of little-endian fields.
#pragma once

#include "base/address.h"
#include "base/fields.h"
#include "base/file_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hccl::bootstrap {

enum class FrameType : std::uint8_t {
  opening = 1,    // rank: its version, a nonce, and the connection as it sees it
  greeting,       // server: the same; from here on each frame but a refusal has a FrameSeal's code
  hello,          // rank: who it is
  welcome,        // server: accepted; who the server is
  refusal,        // server: not accepted, and why; without a code, for the keys may differ
  server_rank,    // server: the rank its process holds
  table,          // server: everybody is there; who they are
  ready,          // rank: has all of its node's descriptors; what it announces to other nodes
  go,             // server: everybody is ready; what all announce
  gave_up,        // rank: its deadline has passed
  leaving,        // rank: an error of its own ends its part
  failure,        // server: the rendezvous has failed, and why
  fault,          // after that, where there are several nodes, both ways: what has failed, and why
  departed,       // rank: it has left; server: which one has
  contribution,   // member to leader: its bytes and memory
  entry,          // leader to member: what one rank contributed
  control_block,  // leader to member: the shared segment; the last frame
  stuck,          // rank: it has waited for long, and for whom
  inquiry,        // server: a rank has; what does this one do?
  waiting,        // rank: that
  verdict,        // server: whom a rank that asked waits for
  missing,        // server: who has not joined yet; for the log
};

struct Frame {
  FrameType type{};
  Bytes payload;
  std::vector<FileDescriptor> descriptors;
};

constexpr std::size_t kFrameHeaderSize = 12;
constexpr std::size_t kSmallPayload = std::size_t{8}
                                      << 10;  // all frames before acceptance, and failures
constexpr std::size_t kLargePayload = std::size_t{16} << 20;  // tables and contributions
constexpr std::size_t kMostDescriptors = 4;                   // per frame

struct FrameHeader {
  FrameType type{};
  std::uint8_t descriptors = 0;
  std::uint32_t length = 0;
};

// `code`: a FrameSeal's, which follows the payload and counts as a part of it.
[[nodiscard]] Bytes encode_frame(FrameType type, std::span<const std::byte> payload,
                                 std::size_t descriptors = 0, std::span<const std::byte> code = {});
// Nothing if the bytes are no header of ours or announce more than `most` bytes.
[[nodiscard]] std::optional<FrameHeader> parse_header(
    std::span<const std::byte, kFrameHeaderSize> bytes, std::size_t most);
// True if the bytes may yet become an opening or a hello, the only frames that a rank sends before
// it is let in. Judges as little as one byte, so that the server never waits in vain.
[[nodiscard]] bool may_become_hello(std::span<const std::byte> bytes);
// The payload of the frame that the bytes begin with, if it is whole and of this type.
[[nodiscard]] std::optional<std::span<const std::byte>> first_payload(
    std::span<const std::byte> bytes, FrameType type);

// An address in 24 bytes.
void put_address(WireWriter& writer, const Address& address);
// Nothing if the bytes are no address.
[[nodiscard]] std::optional<Address> read_address(WireReader& reader);

}  // namespace hccl::bootstrap
