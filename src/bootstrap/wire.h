// SPDX-License-Identifier: Apache-2.0
// Frames, the units in which ranks and servers exchange bytes: a header and a payload of
// little-endian fields.
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
  opening = 1,    // rank: its version, a nonce, and the connection's addresses as it sees them
  greeting,       // server: the same; all later frames but a refusal carry a FrameSeal's code
  hello,          // rank: its rank and process
  welcome,        // server: the rank has joined; the server's process
  refusal,        // server: why the connection is rejected; without a code, for the keys may differ
  server_rank,    // server: the rank of its process
  table,          // server: all ranks have joined; their processes
  ready,          // rank: it has all of its node's descriptors; its announcement to other nodes
  go,             // server: all ranks are ready; their announcements
  gave_up,        // rank: its deadline has passed
  leaving,        // rank: it ends its part because of an error of its own
  failure,        // server: the rendezvous has failed, and why
  fault,          // both ways, after initialisation over several nodes: the communicator has failed
  departed,       // rank: it has left; server: the rank that has left
  contribution,   // to the leader of a node: a rank's bytes and memory
  entry,          // from the leader: the contribution of one rank
  control_block,  // from the leader: the shared segment; the last frame
  stuck,          // rank: it has waited for long, and for which ranks
  inquiry,        // server: asks each rank for its calls, since one is stuck
  waiting,        // rank: answers an inquiry with one of its calls
  verdict,        // server: the ranks at the root of a stall
  missing,        // server: the ranks that have not joined yet; for the log
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

// `code`: from a FrameSeal; it follows the payload and counts as a part of it.
[[nodiscard]] Bytes encode_frame(FrameType type, std::span<const std::byte> payload,
                                 std::size_t descriptors = 0, std::span<const std::byte> code = {});
// Parses a frame's header. Returns nothing if the bytes are not a header of this protocol or
// announce more than `most` bytes.
[[nodiscard]] std::optional<FrameHeader> parse_header(
    std::span<const std::byte, kFrameHeaderSize> bytes, std::size_t most);
// Returns whether the bytes can still become an opening or a hello, the only frames that a rank
// sends before it has joined. Decides on a single byte or more, so that the server rejects other
// senders at once.
[[nodiscard]] bool may_become_hello(std::span<const std::byte> bytes);
// Returns the payload of the frame at the beginning of the bytes, if it is whole and of this type.
[[nodiscard]] std::optional<std::span<const std::byte>> first_payload(
    std::span<const std::byte> bytes, FrameType type);

// Writes an address in 24 bytes.
void put_address(WireWriter& writer, const Address& address);
// Returns nothing if the bytes are not an address.
[[nodiscard]] std::optional<Address> read_address(WireReader& reader);

}  // namespace hccl::bootstrap
