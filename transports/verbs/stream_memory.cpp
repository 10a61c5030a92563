// SPDX-License-Identifier: Apache-2.0
// Allocates all buffers in one memory file, because a shared mapping keeps its pages when the
// process forks.
#include "verbs/stream_memory.h"

#include "base/shared_memory.h"

#include <cstring>

namespace hccl::verbs {
namespace {

constexpr std::size_t kAdvertBytes = std::size_t{64} << 10;  // a multiple of the usual page sizes
static_assert(kAdvertSlots * sizeof(Advert) <= kAdvertBytes);

}  // namespace

StreamMemory::StreamMemory(RegistrationCache& cache) {
  const FileDescriptor file = create_memory_file("hccl-verbs", 2 * kRingBytes + kAdvertBytes);
  incoming_ = MirroredMapping(file, 0, kRingBytes);
  outgoing_ = MirroredMapping(file, kRingBytes, kRingBytes);
  adverts_memory_ = MirroredMapping(file, 2 * kRingBytes, kAdvertBytes);
  registered_in_ = cache.register_always(ring().bytes, PeerAccess::window);
  registered_out_ = cache.register_always({outgoing_.data(), kRingBytes}, PeerAccess::none);
  registered_adverts_ = cache.register_always(adverts().bytes, PeerAccess::window);
}

Advert StreamMemory::advert(std::uint32_t number) const {
  Advert advert;
  std::memcpy(&advert, adverts_memory_.data() + number % kAdvertSlots * sizeof(Advert),
              sizeof(advert));
  return advert;
}

}  // namespace hccl::verbs
