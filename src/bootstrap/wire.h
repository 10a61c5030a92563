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

// Each comment names the sender or the receiver, then the content.
enum class FrameType : std::uint8_t {
  hello = 1,     // rank: its protocol version, its rank number and its process
  welcome,       // server: the rank is admitted; describes the server's process
  refusal,       // server: why it rejects the connection
  server_rank,   // server: the rank that runs in the server's process
  table,         // server: all ranks have joined; describes their processes
  ready,         // rank: it has all descriptors of its node; contains its announcement to all nodes
  go,            // server: all ranks are ready; contains their announcements
  gave_up,       // rank: its deadline has passed
  leaving,       // rank: it leaves because of an error of its own
  failure,       // server: the rendezvous has failed, and why
  fault,         // either: the communicator has failed after initialisation
  departed,      // rank: it has left; server: the rank that has left
  contribution,  // to the leader of a node: a rank's bytes and memory
  entry,         // from the leader: the contribution of one rank
  control_block,  // from the leader: the shared segment; the last frame of the exchange
  stuck,          // rank: its call does not complete; names the ranks that it waits for
  inquiry,        // server: asks each rank for its calls, because a call does not complete
  waiting,        // rank: one of its calls, in answer to an inquiry
  verdict,        // server: the ranks that cause a stall
  missing,        // server: the ranks that have not joined yet, for the log
};

struct Frame {
  FrameType type{};
  Bytes payload;
  std::vector<FileDescriptor> descriptors;
};

constexpr std::size_t kFrameHeaderSize = 12;
// The largest payload, in bytes, that the root server and control links accept in a frame.
constexpr std::size_t kSmallPayload = std::size_t{8} << 10;
// The largest payload, in bytes, that a joining rank accepts in a frame, such as the table, from
// the server or from the leader of its node.
constexpr std::size_t kLargePayload = std::size_t{16} << 20;
constexpr std::size_t kMostDescriptors = 4;  // per frame

struct FrameHeader {
  FrameType type{};
  std::uint8_t descriptors = 0;
  std::uint32_t length = 0;
};

// Returns the bytes of a frame.
[[nodiscard]] Bytes encode_frame(FrameType type, std::span<const std::byte> payload,
                                 std::size_t descriptors = 0);
// Parses a frame's header. Returns nothing if the bytes are not a header of this protocol or the
// payload is longer than `most` bytes.
[[nodiscard]] std::optional<FrameHeader> parse_header(
    std::span<const std::byte, kFrameHeaderSize> bytes, std::size_t most);

// Writes an address in 24 bytes.
void put_address(WireWriter& writer, const Address& address);
// Reads an address that put_address() has written. Returns nothing if the bytes are not an address.
[[nodiscard]] std::optional<Address> read_address(WireReader& reader);

}  // namespace hccl::bootstrap
