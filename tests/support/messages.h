// SPDX-License-Identifier: Apache-2.0
// Sends and receives with their buffers: poisoned, guarded, and compared byte by byte.
#pragma once

#include "operation.h"
#include "session.h"

#include <hccl.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace hccl::test {

// The messages of one rank; what it sends and expects follows from the two ranks and the tag, so
// that both sides know.
class Messages {
 public:
  Messages(const Session& session, const Group& group, Placement placement = Placement::device)
      : session_(session), group_(group), placement_(placement) {}

  // Queues the upload of a buffer (at an odd place in its allocation) and the call, and returns
  // what the call returned.
  hcclResult_t send(int peer, std::size_t count, hcclDataType_t type, std::uint64_t tag,
                    synStreamHandle stream);
  hcclResult_t receive(int peer, std::size_t count, hcclDataType_t type, std::uint64_t tag,
                       synStreamHandle stream);

  // After the streams have been synchronised: every byte is as it must be.
  void verify(synStreamHandle stream);
  // Every byte is as it was uploaded.
  void verify_untouched(synStreamHandle stream);

 private:
  struct Buffer {
    Buffer(synDeviceId device, std::size_t bytes, int peer_in, bool received_in);
    DeviceMemory memory;
    std::vector<std::byte> before, expected;
    std::vector<std::byte> host;  // where the message is, or empty if it is in `memory`
    bool viewed = false;          // the call gets its address in the host view
    [[nodiscard]] void* address();
    int peer;
    bool received;
  };

  Buffer& add(int peer, std::size_t bytes, bool received, std::uint64_t tag,
              synStreamHandle stream);
  void compare(synStreamHandle stream, bool untouched);

  const Session& session_;
  const Group& group_;
  const Placement placement_;
  std::deque<Buffer> buffers_;
};

}  // namespace hccl::test
