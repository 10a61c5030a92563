// SPDX-License-Identifier: Apache-2.0
// Asks the kernel whether host pages are mapped.
#include "device/host_memory.h"

#include "base/error.h"
#include "base/text.h"

#include <cerrno>
#include <limits>

#include <sys/mman.h>
#include <unistd.h>

namespace hccl::device {
namespace {

bool is_mapped(std::uint64_t address) {
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(address / page * page), page, &resident) == 0 ||
         errno != ENOMEM;
}

}  // namespace

void check_host_range(std::uint64_t address, std::uint64_t bytes, const char* what) {
  if (address == 0)
    throw Error(hcclInvalidArgument, text(what, " is null; pass device or host memory"));
  const bool wraps = bytes > std::numeric_limits<std::uint64_t>::max() - address;
  if (!wraps && is_mapped(address) && (bytes <= 1 || is_mapped(address + bytes - 1))) return;
  throw Error(hcclInvalidArgument,
              text(what, " 0x", std::hex, address, std::dec, " + ", bytes,
                   " bytes is neither in device memory nor mapped host memory; pass an address "
                   "from synDeviceMalloc, or memory of this process"));
}

}  // namespace hccl::device
