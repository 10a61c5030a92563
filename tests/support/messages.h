// SPDX-License-Identifier: Apache-2.0
// Sends and receives whose buffers are poisoned, guarded, and compared byte by byte.
#pragma once

#include "operation.h"
#include "session.h"

#include <hccl.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace hccl::test {

// The messages of one rank. A message's content is a function of its sender, its receiver and its
// tag, so that both ranks can compute the content.
class Messages {
 public:
  Messages(const Session& session, const Group& group, Placement placement = Placement::device)
      : session_(session), group_(group), placement_(placement) {}

  // Queue the upload of a deliberately misaligned buffer, followed by the send or receive. Return
  // the result of hcclSend or hcclRecv.
  hcclResult_t send(int peer, std::size_t count, hcclDataType_t type, std::uint64_t tag,
                    synStreamHandle stream);
  hcclResult_t receive(int peer, std::size_t count, hcclDataType_t type, std::uint64_t tag,
                       synStreamHandle stream);

  // Requires that every byte of all buffers has its expected value. Downloads device memory over
  // `stream`. The messages' streams must have been synchronised.
  void verify(synStreamHandle stream);
  // As verify(), but requires that no byte has changed since the upload.
  void verify_untouched(synStreamHandle stream);

 private:
  struct Buffer {
    Buffer(synDeviceId device, std::size_t bytes, int peer_in, bool received_in);
    DeviceMemory memory;
    std::vector<std::byte> before, expected;
    std::vector<std::byte> host;           // the buffer for Placement::host, else empty
    std::unique_ptr<PinnedMemory> pinned;  // the buffer for Placement::pinned, else null
    bool viewed = false;                   // the call gets the buffer's address in the host view
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
