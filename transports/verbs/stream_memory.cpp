// SPDX-License-Identifier: Apache-2.0
// One memory file for all of it: shared memory, so that a fork of the process changes nothing.
#include "verbs/stream_memory.h"

#include "base/shared_memory.h"

#include <cstring>

namespace hccl::verbs {
namespace {

constexpr std::size_t kNotesBytes = std::size_t{64} << 10;  // a page, however large pages are
static_assert(kInvitationPlaces * sizeof(Invitation) <= kNotesBytes);

}  // namespace

StreamMemory::StreamMemory(RegistrationCache& cache) {
  const FileDescriptor file = create_memory_file("hccl-verbs", 2 * kRingBytes + kNotesBytes);
  incoming_ = MirroredMapping(file, 0, kRingBytes);
  outgoing_ = MirroredMapping(file, kRingBytes, kRingBytes);
  notes_ = MirroredMapping(file, 2 * kRingBytes, kNotesBytes);
  registered_in_ = cache.register_always({incoming_.data(), kRingBytes}, true);
  registered_out_ = cache.register_always({outgoing_.data(), kRingBytes}, false);
  registered_notes_ =
      cache.register_always({notes_.data(), kInvitationPlaces * sizeof(Invitation)}, true);
}

Invitation StreamMemory::invitation(std::uint32_t number) const {
  Invitation invitation;
  std::memcpy(&invitation, notes_.data() + number % kInvitationPlaces * sizeof(Invitation),
              sizeof(invitation));
  return invitation;
}

}  // namespace hccl::verbs
